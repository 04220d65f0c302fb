package lab;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpSession;
import java.io.IOException;
import java.io.InputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** Spring Boot as report S3 has it: an embedded Tomcat that speaks HTTP/1.1 without TLS, sessions in a cookie. */
@SpringBootApplication
@RestController
public class Application {
    private static final int BYTES_MAX = 64 << 20;

    public static void main(String[] arguments) {
        SpringApplication.run(Application.class, arguments);
    }

    /** Which address was asked, and how the request reads here. */
    @GetMapping("/")
    Map<String, Object> hello(HttpServletRequest request) {
        return Map.of("hello", "world", "from", request.getLocalAddr(), "protocol", request.getProtocol(),
                "host", request.getServerName());
    }

    /** An answer of so many bytes. */
    @GetMapping("/bytes")
    byte[] bytes(@RequestParam int count) {
        byte[] body = new byte[Math.min(count, BYTES_MAX)];
        Arrays.fill(body, (byte) 'x');
        return body;
    }

    /** Length and SHA-256 of what was sent, read as it comes. */
    @PostMapping("/digest")
    Map<String, Object> digest(InputStream body) throws IOException, NoSuchAlgorithmException {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        byte[] part = new byte[16384];
        long length = 0;
        for (int read; (read = body.read(part)) > 0; length += read) {
            digest.update(part, 0, read);
        }
        return Map.of("length", length, "sha256", HexFormat.of().formatHex(digest.digest()));
    }

    /** Begins a session, as the report's load does. */
    @PostMapping("/login")
    Map<String, String> login(@RequestParam String user, HttpSession session) {
        session.setAttribute("user", user);
        return Map.of("user", user);
    }

    /** Who the session belongs to. */
    @GetMapping("/me")
    Map<String, Object> me(HttpSession session) {
        Object user = session.getAttribute("user");
        return Map.of("user", user == null ? "nobody" : user);
    }
}
