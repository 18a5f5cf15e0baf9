package vsphere_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/collect/vsphere"
	"github.com/braggdev/bragg/internal/target"
)

// between passes calls on to a simulated vCenter, but those whose text has a word are answered by wrong.
func between(t *testing.T, source target.Source, word string, wrong http.HandlerFunc) target.Source {
	t.Helper()
	at, err := url.Parse(source.URL)
	if err != nil {
		t.Fatal(err)
	}
	onward := httputil.NewSingleHostReverseProxy(at)
	proxy := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		if bytes.Contains(text, []byte(word)) {
			wrong(w, r)
			return
		}
		onward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	insecure := proxy.Client().Transport.(*http.Transport).Clone()
	insecure.TLSClientConfig.InsecureSkipVerify = true
	onward.Transport = insecure
	sum := sha256.Sum256(proxy.Certificate().Raw)
	source.URL, source.Fingerprint = proxy.URL, hex.EncodeToString(sum[:])
	return source
}

// A login that is redirected is not repeated elsewhere: its body is the password.
func TestPasswordStaysAtTheSource(t *testing.T) {
	_, source, _ := vcenter(t, nil)
	var took atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { took.Store(true) }))
	t.Cleanup(other.Close)
	source = between(t, source, "<Login ", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/sdk", http.StatusTemporaryRedirect)
	})
	_, err := vsphere.Open(t.Context(), collect.Options{Source: source, User: "viewer", Secret: password})
	if err == nil || took.Load() {
		t.Errorf("got %v; the other host took the request: %v", err, took.Load())
	}
}

func TestHostileAnswers(t *testing.T) {
	_, source, _ := vcenter(t, nil)
	for what, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		want   string
	}{
		"a password in an error": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = fmt.Fprintf(w, `<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body><Fault><faultcode>ServerFaultCode</faultcode>`+
				"<faultstring>cannot parse\n\u202e %s</faultstring></Fault></Body></Envelope>", password)
		}, `source "vc": `},
		"an endless answer": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/xml")
			_, _ = io.WriteString(w, `<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body>`)
			for part := bytes.Repeat([]byte("x"), 1<<20); ; {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		}, "more than 32 MiB"},
	} {
		hostile := between(t, source, "<Login ", func(w http.ResponseWriter, _ *http.Request) { c.answer(w) })
		_, err := vsphere.Open(t.Context(), collect.Options{Source: hostile, User: "viewer", Secret: password})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), password) || strings.ContainsAny(err.Error(), "\n\u202e") {
			t.Errorf("%s: got %q", what, err)
		}
	}
}
