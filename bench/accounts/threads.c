/* A thread for each connection. Port: the first argument. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *answer(void *place) {
    int client = (int)(long)place;
    char text[1024];
    unsigned long total = 0;
    if (read(client, text, sizeof text) > 0) {
        for (volatile long turn = 0; turn < 3000000; turn++) {
            total += turn * turn;
        }
        int length = snprintf(text, sizeof text, "HTTP/1.0 200 OK\r\n\r\n%lu", total);
        if (write(client, text, length) < 0) {
            perror("write");
        }
    }
    close(client);
    return NULL;
}

int main(int count, char **words) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(count > 1 ? atoi(words[1]) : 0), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int server = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(server, (struct sockaddr *)&at, sizeof at) || listen(server, 64)) {
        perror("listen");
        return 1;
    }
    for (;;) {
        int client = accept(server, NULL, NULL);
        pthread_t thread;
        if (client >= 0 && !pthread_create(&thread, NULL, answer, (void *)(long)client)) {
            pthread_detach(thread);
        }
    }
}
