package vcenter

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/trust"
)

const password = "secret-of-u<&>"

// A vCenter, or what pretends to be one, can neither fill the memory nor put the password or control characters into errors.
func TestHostileAnswers(t *testing.T) {
	const begin = `<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body>`
	for what, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		want   string
	}{
		"a password in an error": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = fmt.Fprintf(w, begin+"<Fault><faultcode>ServerFaultCode</faultcode><faultstring>cannot parse\n\u202e %s</faultstring></Fault></Body></Envelope>",
				strings.NewReplacer("<", "&lt;", "&", "&amp;").Replace(password))
		}, "cannot parse"},
		"an endless answer": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb(begin))
		}, "more than 256 MiB"},
		"a page of a proxy": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html><script>alert(1)</script>")
		}, "reach the vCenter"},
		"entities": {func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>`+begin+"<Fault><faultstring>&x;</faultstring></Fault></Body></Envelope>")
		}, "reach the vCenter"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { c.answer(w) }))
			t.Cleanup(s.Close)
			sum := sha256.Sum256(s.Certificate().Raw)
			_, err := Dial(t.Context(), Options{
				Endpoint: s.URL, User: "u", Password: password, Trust: trust.Service{Fingerprint: hex.EncodeToString(sum[:])},
			})
			text := diag.Sentence(err)
			if err == nil || !strings.Contains(text, c.want) || strings.Contains(text, password) || strings.Contains(text, "root:") || strings.ContainsAny(text, "\u202e") {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}

// bomb is 300 MiB of text, compressed.
func bomb(begin string) []byte {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, begin)
	for range 300 {
		_, _ = z.Write(bytes.Repeat([]byte("x"), 1<<20))
	}
	_ = z.Close()
	return packed.Bytes()
}
