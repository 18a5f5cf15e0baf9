package api

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/net/websocket"

	"github.com/braggdev/bragg/internal/trust"
)

// forwarding is the subresource portforward of a pod whose port echoes, as a kubelet speaks it.
func forwarding(t *testing.T) *httptest.Server {
	t.Helper()
	echo := websocket.Server{
		Handshake: func(c *websocket.Config, r *http.Request) error {
			if r.Header.Get("Authorization") != "Bearer token-1" || r.URL.Query().Get("ports") != "7401" ||
				r.URL.Path != "/api/v1/namespaces/bench/pods/p/portforward" || len(c.Protocol) != 1 || c.Protocol[0] != tunnelProtocol {
				return websocket.ErrBadWebSocketProtocol
			}
			return nil
		},
		Handler: func(c *websocket.Conn) {
			for channel := range byte(2) {
				_ = websocket.Message.Send(c, []byte{channel, 7401 & 255, 7401 >> 8})
			}
			for {
				var message []byte
				if websocket.Message.Receive(c, &message) != nil {
					return
				}
				if string(message[1:]) == "fail" {
					_ = websocket.Message.Send(c, append([]byte{errorChannel}, "nothing listens"...))
					continue
				}
				_ = websocket.Message.Send(c, message)
			}
		},
	}
	s := httptest.NewTLSServer(echo)
	t.Cleanup(s.Close)
	return s
}

func clientOf(t *testing.T, s *httptest.Server) *Client {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := New(Access{Endpoint: s.URL, Token: "token-1", Trust: trust.Service{Name: "API server", CAFile: ca}, Namespace: "bench", UserAgent: "bragg"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestTunnel(t *testing.T) {
	c := clientOf(t, forwarding(t))
	conn, err := c.Tunnel(t.Context(), "p", 7401)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	big := make([]byte, 3*tunnelChunk+1)
	for i := range big {
		big[i] = byte(i % 251)
	}
	go func() { _, _ = conn.Write(big) }()
	got := make([]byte, len(big))
	if _, err := io.ReadFull(conn, got); err != nil {
		t.Fatal(err)
	}
	if string(got) != string(big) {
		t.Error("what came back differs")
	}
	if _, err := conn.Write([]byte("fail")); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(got); err == nil || err.Error() != "nothing listens" {
		t.Errorf("got %v", err)
	}
	if _, err := c.Tunnel(t.Context(), "other", 7401); err == nil {
		t.Error("a tunnel to another pod")
	}
}
