# A process for each connection, and the server waits for those that have ended. Port: the first argument.
use strict;
use warnings;
use IO::Socket::INET;
use POSIX ":sys_wait_h";

$SIG{CHLD} = sub { while (waitpid(-1, WNOHANG) > 0) { } };
my $server = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => $ARGV[0], Listen => 64, ReuseAddr => 1) or die $!;
while (1) {
    my $client = $server->accept or next;
    if (!fork) {
        my $line = <$client>;
        my $total = 0;
        $total += $_ * $_ for 1 .. 60_000;
        print $client "HTTP/1.0 200 OK\r\n\r\n$total";
        exit 0;
    }
    close $client;
}
