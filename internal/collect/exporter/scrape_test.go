package exporter_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/collect/exporter"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/testreq"
)

// scripted answers as a function does.
type scripted func(ctx context.Context) (collect.Reading, error)

func (s scripted) Collect(ctx context.Context) (collect.Reading, error) { return s(ctx) }
func (scripted) Close() error                                           { return nil }

// of returns an exporter of a source that answers as a function does.
func of(t *testing.T, interval time.Duration, answer scripted) *exporter.Exporter {
	t.Helper()
	e := exporter.New([]exporter.Source{{Source: target.Source{Name: "s", Interval: interval}, Open: func(context.Context) (collect.Collector, error) { return answer, nil }}})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// serve serves an exporter until the test ends and returns its address.
func serve(t *testing.T, e *exporter.Exporter, webConfig string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Serve(ctx, listener, webConfig) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// scrape returns status, content type and text of an answer.
func scrape(t *testing.T, address string, change func(*http.Request)) (status int, kind, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(request)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := client.Do(request)
	if err != nil {
		t.Error(err)
		return 0, "", ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response.StatusCode, response.Header.Get("Content-Type"), string(body)
}

// everything has a sample of each metric, with labels that storage systems may well have, and some that no metric may have.
func everything(context.Context) (collect.Reading, error) {
	var r collect.Reading
	for _, m := range collect.Metrics() {
		for _, name := range []string{`back\slash "quoted"`, "two\nlines\ttab", "größe 卷 😀", "", "\xff\xfe", "\xfd\xfc", "{a=\"b\"} 1", strings.Repeat("x", 5000), "# HELP", "\x00\u2028"} {
			if strings.HasPrefix(m.Name, "bragg_source_") {
				continue
			}
			r.Samples = append(r.Samples, collect.Sample{Name: m.Name, Labels: map[string]string{"object": "volume", "name": name, "source": "another"}, Value: 1.5})
		}
	}
	r.Samples = append(r.Samples, collect.Sample{Name: "not_ours", Value: 1}, collect.Sample{Name: collect.Used, Labels: map[string]string{"": "x", "a-b": "y"}, Value: 2})
	return r, nil
}

// TestHostileLabels: promtool accepts every metric with hostile values of labels, as text and as OpenMetrics, and names that become the same are
// there once.
func TestHostileLabels(t *testing.T) {
	promtool := testreq.Program(t, "promtool")
	address := "http://" + serve(t, of(t, time.Hour, everything), "") + "/metrics"
	for accept, want := range map[string]string{"": "text/plain; version=0.0.4", "application/openmetrics-text;version=1.0.0": "application/openmetrics-text; version=1.0.0"} {
		status, kind, text := scrape(t, address, func(r *http.Request) { r.Header.Set("Accept", accept) })
		if status != http.StatusOK || !strings.HasPrefix(kind, want) || strings.Contains(text, "another") || strings.Contains(text, "not_ours") {
			t.Fatalf("%s: got %d, %s, %s", accept, status, kind, text)
		}
		open := strings.HasSuffix(text, "# EOF\n")
		if open != (accept != "") {
			t.Errorf("%q: it ends with %q", accept, text[max(0, len(text)-20):])
		}
		if n := strings.Count(text, "bragg_storage_size_bytes{"); n != 9 {
			t.Errorf("%d sizes, want 9: two names are not UTF-8 and become the same", n)
		}
		if open {
			continue // promtool reads text only
		}
		cmd := exec.CommandContext(t.Context(), promtool, "check", "metrics")
		cmd.Stdin = strings.NewReader(text)
		if said, err := cmd.CombinedOutput(); err != nil || len(said) > 0 {
			t.Errorf("promtool: %v: %s", err, said)
		}
	}
}

// TestHangingSource: a scrape ends before its server gives up, without old values; the reading goes on for the next one, and scrapes share it.
func TestHangingSource(t *testing.T) {
	answer, calls := make(chan struct{}), 0
	e := of(t, time.Hour, func(ctx context.Context) (collect.Reading, error) {
		calls++
		select {
		case <-answer:
		case <-ctx.Done():
			return collect.Reading{}, ctx.Err()
		}
		return collect.Reading{Samples: []collect.Sample{{Name: collect.Used, Labels: map[string]string{"name": "v"}, Value: 7}}}, nil
	})
	address := "http://" + serve(t, e, "") + "/metrics"
	var work sync.WaitGroup
	for range 2 {
		work.Go(func() {
			status, _, text := scrape(t, address, func(r *http.Request) { r.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", "0.1") })
			if status != http.StatusOK || !strings.Contains(text, `bragg_source_up{source="s"} 0`) || strings.Contains(text, "bragg_storage") {
				t.Errorf("got %d and\n%s", status, text)
			}
		})
	}
	work.Wait()
	for range 2 {
		work.Go(func() {
			if _, _, text := scrape(t, address, nil); !strings.Contains(text, `bragg_source_up{source="s"} 1`) || !strings.Contains(text, `bragg_storage_used_bytes{name="v",source="s"} 7`) {
				t.Errorf("got\n%s", text)
			}
		})
	}
	close(answer)
	work.Wait()
	if calls != 1 {
		t.Errorf("the source was read %d times", calls)
	}
}

// TestCloseEndsReadings: a source that hangs does not keep the program from ending.
func TestCloseEndsReadings(t *testing.T) {
	e := of(t, time.Second, func(ctx context.Context) (collect.Reading, error) { <-ctx.Done(); return collect.Reading{}, ctx.Err() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	var out bytes.Buffer
	if err := e.Write(ctx, &out); err == nil || !strings.Contains(err.Error(), `source "s": no answer within the time of the scrape`) {
		t.Errorf("got %v", err)
	}
}

// hunter2 is the bcrypt hash of hunter2-of-web.
const hunter2 = "$2b$04$GanltAKlH3FH6bdDiL9AbuGDmcw86IkTfZbwaXGqwkarPOmkEFzta"

// TestWebConfig: a file of the form of other exporters adds TLS and users, with paths relative to it.
func TestWebConfig(t *testing.T) {
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
	write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}))
	good := write("web.yml", []byte("tls_server_config: {cert_file: cert.pem, key_file: key.pem}\nbasic_auth_users: {prom: \""+hunter2+"\"}\n"))
	if err := exporter.CheckWebConfig(good); err != nil {
		t.Fatal(err)
	}
	address := serve(t, of(t, time.Hour, everything), good)
	for password, want := range map[string]int{"": http.StatusUnauthorized, "wrong": http.StatusUnauthorized, "hunter2-of-web": http.StatusOK} {
		status, _, text := scrape(t, "https://"+address+"/metrics", func(r *http.Request) {
			if password != "" {
				r.SetBasicAuth("prom", password)
			}
		})
		if status != want || strings.Contains(text, "bragg_") != (want == http.StatusOK) {
			t.Errorf("with %q: got %d, %.100s", password, status, text)
		}
	}
	if status, _, text := scrape(t, "http://"+address+"/metrics", nil); status != http.StatusBadRequest || strings.Contains(text, "bragg_") {
		t.Errorf("over http: %d %s", status, text)
	}
	for what, text := range map[string]string{"unknown key": "hunter2: {}", "no hash": "basic_auth_users: {a: hunter2}", "no map": "basic_auth_users: hunter2", "text": "hunter2", "no file": "tls_server_config: {cert_file: x.pem, key_file: y.pem}"} {
		if err := exporter.CheckWebConfig(write("bad.yml", []byte(text))); err == nil || what != "unknown key" && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
