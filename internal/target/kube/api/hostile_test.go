package api

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func serving(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	return clientOf(t, s)
}

// The library follows redirections and repeats the request with the token, to any host and without TLS.
func TestTokenStaysAtTheEndpoint(t *testing.T) {
	var took atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		took.Store(true)
		_, _ = io.WriteString(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},"gitVersion":"v1"}`)
	}))
	t.Cleanup(other.Close)
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/take", http.StatusTemporaryRedirect)
	})
	_, got := Get[corev1.Pod](t.Context(), c, Pods, "p")
	_, raw := c.Raw(t.Context(), http.MethodGet, "/version", nil)
	for _, err := range []error{got, raw} {
		if err == nil || !strings.Contains(err.Error(), "redirection") {
			t.Errorf("got %v", err)
		}
	}
	if took.Load() {
		t.Error("the request went to the other host")
	}
}

func TestAnswersAreBounded(t *testing.T) {
	endless := serving(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"continue":"more"},"items":[]}`)
	})
	bomb := serving(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]`)
		for part := make([]byte, 1<<20); ; {
			if _, err := z.Write(part); err != nil {
				return
			}
		}
	})
	for name, c := range map[string]*Client{"endless pages": endless, "a bomb": bomb} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := List[corev1.Pod](t.Context(), c, Pods, metav1.ListOptions{})
			if err == nil || !strings.Contains(err.Error(), "more than") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// What a server sends in place of HTTP is in the library's errors as it came.
func TestErrorsHoldNoControlCharacters(t *testing.T) {
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nbad\x1b[31m %s\r\n\r\n", strings.Repeat("y", 5000))
		_ = conn.Close()
	})
	_, err := c.Once(t.Context(), "/version")
	if err == nil || strings.Contains(err.Error(), "\x1b") || len(err.Error()) > 2000 {
		t.Errorf("got %q", err)
	}
}

// A tunnel through a server that sends anything ends with an error.
func TestTunnelOfGarbage(t *testing.T) {
	for name, messages := range map[string][][]byte{
		"another port": {{0, 1, 2}}, "short": {{0}}, "empty": {{}}, "large": {make([]byte, messageMax+1)},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewTLSServer(websocket.Server{Handler: func(c *websocket.Conn) {
				for _, m := range messages {
					_ = websocket.Message.Send(c, m)
				}
			}})
			t.Cleanup(s.Close)
			if conn, err := clientOf(t, s).Tunnel(t.Context(), "p", 7401); err == nil {
				_ = conn.Close()
				t.Error("a tunnel of garbage")
			}
		})
	}
}
