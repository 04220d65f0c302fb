// A thread for each connection. Port: the first argument.
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

public class Threads {
    public static void main(String[] args) throws Exception {
        ServerSocket server = new ServerSocket(Integer.parseInt(args[0]), 64, InetAddress.getByName("127.0.0.1"));
        while (true) {
            Socket client = server.accept();
            new Thread(() -> answer(client)).start();
        }
    }

    private static void answer(Socket client) {
        try (client) {
            client.getInputStream().read(new byte[1024]);
            long total = 0;
            for (int turn = 0; turn < 4_000_000; turn++) {
                total += (long) turn * turn % 7;
            }
            client.getOutputStream().write(("HTTP/1.0 200 OK\r\n\r\n" + total).getBytes());
        } catch (java.io.IOException error) {
            System.err.println(error);
        }
    }
}
