// A program for each request, as CGI and many image services do. Port: the first argument.
const { execFile } = require("node:child_process");
const http = require("node:http");

http.createServer((request, answer) => {
    execFile("sh", ["-c", "i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done; echo $i"], (error, out) => answer.end(error ? "failed" : out));
}).listen(Number(process.argv[2]), "127.0.0.1");
