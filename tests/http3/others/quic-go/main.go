// A client of HTTP/3 with quic-go: a line for each case, `NAME ok`, or `NAME failed` with the reason.
//
//	client PORT CA BODY SHA      BODY is the file to send, SHA the hash of /big.txt
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

const patience = 30 * time.Second

type place struct {
	address, big string
	body         []byte
	tls          *tls.Config
}

func (p *place) connect() (*quic.Conn, *http3.ClientConn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// A connection of a transport has ids, without which it could not move.
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4zero})
	if err != nil {
		return nil, nil, err
	}
	to, err := net.ResolveUDPAddr("udp4", p.address)
	if err != nil {
		return nil, nil, err
	}
	conn, err := (&quic.Transport{Conn: socket}).DialEarly(ctx, to, p.tls, &quic.Config{})
	if err != nil {
		return nil, nil, err
	}
	return conn, (&http3.Transport{}).NewClientConn(conn), nil
}

func (p *place) ask(client *http3.ClientConn, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "https://localhost"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := client.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != 200 {
		err = fmt.Errorf("status %d", answer.StatusCode)
	}
	return said, err
}

func (p *place) whole(client *http3.ClientConn, method, name string) error {
	said, err := p.ask(client, method, "/big.txt?"+name, nil)
	if err == nil && hash(said) != p.big {
		err = fmt.Errorf("%d other bytes", len(said))
	}
	return err
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (p *place) get() error {
	conn, client, err := p.connect()
	if err != nil {
		return err
	}
	defer conn.CloseWithError(0x100, "")
	return p.whole(client, "GET", "quic-go-get")
}

func (p *place) post() error {
	conn, client, err := p.connect()
	if err != nil {
		return err
	}
	defer conn.CloseWithError(0x100, "")
	said, err := p.ask(client, "POST", "/echo?quic-go-post", p.body)
	if err != nil {
		return err
	}
	var seen struct{ Sha string }
	if err := json.Unmarshal(said, &seen); err != nil {
		return err
	}
	if seen.Sha != hash(p.body) {
		return errors.New("the origin saw other bytes")
	}
	return nil
}

func (p *place) websocket() error {
	conn, client, err := p.connect()
	if err != nil {
		return err
	}
	defer conn.CloseWithError(0x100, "")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case <-client.ReceivedSettings():
	case <-ctx.Done():
		return ctx.Err()
	}
	if !client.Settings().EnableExtendedConnect {
		return errors.New("no extended CONNECT in SETTINGS")
	}
	stream, err := client.OpenRequestStream(ctx)
	if err != nil {
		return err
	}
	where, _ := url.Parse("https://localhost/ws?quic-go-websocket")
	request := &http.Request{Method: http.MethodConnect, Proto: "websocket", Host: "localhost", URL: where, Header: http.Header{"Sec-Websocket-Version": {"13"}}}
	if err := stream.SendRequestHeader(request); err != nil {
		return err
	}
	answer, err := stream.ReadResponse()
	if err != nil {
		return err
	}
	if answer.StatusCode != 200 {
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	// Masked with zeros, so the echo has the same bytes.
	payload := bytes.Repeat([]byte("x"), 60000)
	if _, err := stream.Write(append([]byte{0x82, 0x80 | 126, 60000 >> 8, 60000 & 255, 0, 0, 0, 0}, payload...)); err != nil {
		return err
	}
	echo := make([]byte, 4+len(payload))
	if _, err := io.ReadFull(stream, echo); err != nil {
		return err
	}
	if !bytes.Equal(echo[4:], payload) {
		return errors.New("other bytes came back")
	}
	return stream.Close()
}

func (p *place) early() error {
	p.tls.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	defer func() { p.tls.ClientSessionCache = nil }()
	conn, client, err := p.connect()
	if err != nil {
		return err
	}
	if _, err := p.ask(client, "GET", "/vars?quic-go-first", nil); err != nil {
		return err
	}
	// The ticket comes after the handshake.
	time.Sleep(200 * time.Millisecond)
	conn.CloseWithError(0x100, "")
	conn, client, err = p.connect()
	if err != nil {
		return err
	}
	defer conn.CloseWithError(0x100, "")
	if _, err := p.ask(client, http3.MethodGet0RTT, "/vars?quic-go-early", nil); err != nil {
		return err
	}
	if !conn.ConnectionState().Used0RTT {
		return errors.New("the server took no early data")
	}
	return nil
}

func (p *place) move() error {
	conn, client, err := p.connect()
	if err != nil {
		return err
	}
	defer conn.CloseWithError(0x100, "")
	if err := p.whole(client, "GET", "quic-go-move"); err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4zero})
	if err != nil {
		return err
	}
	path, err := conn.AddPath(&quic.Transport{Conn: socket})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := path.Probe(ctx); err != nil {
		return err
	}
	if err := path.Switch(); err != nil {
		return err
	}
	return errors.Join(p.whole(client, "GET", "quic-go-move"), p.whole(client, "GET", "quic-go-move"))
}

func main() {
	ca, err := os.ReadFile(os.Args[2])
	if err != nil {
		panic(err)
	}
	body, err := os.ReadFile(os.Args[3])
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	p := &place{address: "127.0.0.1:" + os.Args[1], big: os.Args[4], body: body, tls: &tls.Config{
		RootCAs: roots, ServerName: "localhost", NextProtos: []string{http3.NextProtoH3},
	}}
	for _, each := range []struct {
		name string
		act  func() error
	}{{"get", p.get}, {"post", p.post}, {"websocket", p.websocket}, {"early", p.early}, {"move", p.move}} {
		if err := each.act(); err != nil {
			fmt.Println(each.name, "failed", strings.ReplaceAll(err.Error(), "\n", "; "))
		} else {
			fmt.Println(each.name, "ok")
		}
	}
}
