package httpbound_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/httpbound"
)

// hostile answers with more than a client wants, in the way that its path names.
func hostile(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/small", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "small") })
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		for part := strings.Repeat("x", 64<<10); ; {
			if _, err := io.WriteString(w, part); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write(make([]byte, 4<<20))
		_ = z.Close()
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begin")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://other.example/take?token=secret", http.StatusTemporaryRedirect)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestBounds(t *testing.T) {
	s := hostile(t)
	transport := &httpbound.Transport{Next: http.DefaultTransport.(*http.Transport).Clone(), BytesMax: 1 << 20, TimeMax: 200 * time.Millisecond,
		Endless: func(r *http.Request) bool { return r.URL.RawQuery == "watch" }}
	client := &http.Client{Transport: transport, CheckRedirect: httpbound.Refuse}
	defer client.CloseIdleConnections()
	get := func(ctx context.Context, path string) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
	var size *httpbound.SizeError
	var late *httpbound.TimeError
	var moved *httpbound.RedirectError
	if err := get(t.Context(), "/small"); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/large", "/bomb"} {
		if err := get(t.Context(), path); !errors.As(err, &size) {
			t.Errorf("%s: got %v", path, err)
		}
	}
	if err := get(t.Context(), "/bomb?watch"); err != nil {
		t.Errorf("a stream: %v", err)
	}
	if err := get(t.Context(), "/slow"); !errors.As(err, &late) {
		t.Errorf("slow: got %v", err)
	}
	if err := get(t.Context(), "/moved"); !errors.As(err, &moved) || moved.Host != "http://other.example" || strings.Contains(moved.Error(), "secret") {
		t.Errorf("moved: got %v", err)
	}
	shared := httpbound.Budget(t.Context(), 12)
	for i, want := range []bool{true, true, false} {
		if err := get(shared, "/small"); (err == nil) != want {
			t.Errorf("answer %d of the budget: %v", i, err)
		}
	}
}
