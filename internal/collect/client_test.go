package collect_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/target"
)

const (
	viewer   = "viewer"
	password = `hun+ter2<&>`
)

// client returns a client of a server with a user and a password.
func client(t *testing.T, address string) *collect.Client {
	t.Helper()
	c, err := collect.NewClient(collect.Options{Source: target.Source{Name: "s", URL: address, TLS: target.TLSNone}, User: viewer, Secret: password}, "exporter", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestHostileAnswers: answers without an end, bombs and redirects end in an error with its reason, in bounded memory, and the credential goes to no other
// address and into no error.
func TestHostileAnswers(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s was requested, with %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	block := []byte(strings.Repeat("a_metric 1\n", 1000))
	endless := func(w io.Writer) {
		for range 10_000 { // 100 MB; the client hangs up before
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
	for what, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"endless": {func(w http.ResponseWriter, _ *http.Request) { endless(w) }, "an answer has more than 16777216 bytes"},
		"bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			endless(z)
			_ = z.Close()
		}, "an answer has more than 16777216 bytes"},
		"no gzip": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, "a_metric 1\n")
		}, "gzip: invalid header"},
		"header":   {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, "response header"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, "302 Found: redirect to \"" + elsewhere.URL + "\" is not followed"},
		"file": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusMovedPermanently)
		}, `redirect to "file:///etc/passwd" is not followed`},
		"echo": {func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "not with "+r.Header.Get("Authorization"), http.StatusForbidden)
		}, "403 Forbidden: not with Basic ***"},
		"echo password": {func(w http.ResponseWriter, r *http.Request) {
			_, p, _ := r.BasicAuth()
			http.Error(w, "not with "+p, http.StatusForbidden)
		}, "not with ***"},
		"echo in a link": {func(w http.ResponseWriter, r *http.Request) {
			_, p, _ := r.BasicAuth()
			http.Redirect(w, r, "/login?p="+url.QueryEscape(p), http.StatusFound)
		}, `redirect to "/login?p=***"`},
		"no text": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write([]byte("\xff\x00\x1b[31m"))
		}, "502 Bad Gateway: "},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "a_metric 1\n")
		}, "unexpected EOF"},
	} {
		t.Run(what, func(t *testing.T) {
			server := httptest.NewServer(c.answer)
			defer server.Close()
			_, err := client(t, server.URL).Do(t.Context(), collect.Call{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			for _, secret := range []string{password, url.QueryEscape(password), "dmlld2VyOmh1bit0ZXIyPCY+", "\x1b"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error contains %q: %v", secret, err)
				}
			}
			if len(err.Error()) > 500 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// TestSlowAnswers: a server that sends a byte at a time, or nothing, costs no more time than the reading has.
func TestSlowAnswers(t *testing.T) {
	for what, serve := range map[string]func(net.Conn){
		"silent":  func(net.Conn) {},
		"headers": func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n") },
		"body":    func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\na_met") },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			hold := make(chan struct{})
			defer close(hold)
			go func() {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					return
				}
				serve(c)
				<-hold
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err = client(t, "http://"+listener.Addr().String()).Do(ctx, collect.Call{})
			if err == nil || !strings.Contains(err.Error(), "deadline exceeded") || ctx.Err() == nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestManySmallObjects: a text of small objects would take a hundred times its size in memory.
func TestManySmallObjects(t *testing.T) {
	var to struct{ Records []struct{ Name string } }
	answer := collect.Answer{Body: []byte(`{"records":[` + strings.Repeat("{},", 600_000) + `{}]}`)}
	if err := answer.JSON(&to); err == nil || !strings.Contains(err.Error(), "600003 objects") || len(to.Records) > 0 {
		t.Errorf("got %v and %d records", err, len(to.Records))
	}
	answer.Body = []byte(`{"records":[{"name":"a"}]}`)
	if err := answer.JSON(&to); err != nil || to.Records[0].Name != "a" {
		t.Errorf("got %+v, %v", to, err)
	}
}
