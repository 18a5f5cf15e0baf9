//go:build unix

package agent

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
)

// agentProcess starts this test's binary as an agent with one end of a socket pair and a listener for metrics.
func agentProcess(t *testing.T) (conn net.Conn, command *exec.Cmd, said *bytes.Buffer) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	near, far := os.NewFile(uintptr(fds[0]), "near"), os.NewFile(uintptr(fds[1]), "far")
	defer near.Close()
	defer far.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	metrics, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer metrics.Close()
	config, err := json.Marshal(Config{
		VM: "DB-0001", ConnectionFD: 3, MetricsFD: 4, VCPUs: 1, Devices: []load.Device{{Name: "/dev/sdb", Path: "disk"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	said = &bytes.Buffer{}
	command = exec.Command(os.Args[0], "__agent", string(config))
	command.ExtraFiles, command.Stderr = []*os.File{far, metrics}, said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	if conn, err = net.FileConn(near); err != nil {
		t.Fatal(err)
	}
	return conn, command, said
}

// The process ends when its connection closes, even with a load that does not want to stop.
func TestProcessEndsWithItsConnection(t *testing.T) {
	conn, command, said := agentProcess(t)
	c := NewClient(conn, ClientOptions{})
	hello, err := c.Hello(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if hello.PID != command.Process.Pid || hello.VM != "DB-0001" {
		t.Errorf("got %+v", hello)
	}
	if text := get(t, "http://"+hello.MetricsAddress+"/metrics"); !strings.Contains(text, "node_disk_reads_completed_total{device=\"sdb\"") {
		t.Errorf("metrics are %q", text)
	}
	w := workload()
	w.Generator = "stuck"
	w.Devices = nil
	done := make(chan error, 1)
	go func() { done <- c.Run(t.Context(), w, newCollector()) }()
	waitUntil(t, func() bool {
		h, err := c.Health(t.Context())
		return err == nil && len(h.Workloads) == 1
	})
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("the agent ended with %v: %s", err, said)
	}
	if err := <-done; !errors.Is(err, load.ErrLost) {
		t.Errorf("the run ended with %v", err)
	}
}

// A node that shuts down asks its VMs to end.
func TestProcessEndsWhenAsked(t *testing.T) {
	conn, command, said := agentProcess(t)
	c := NewClient(conn, ClientOptions{})
	if _, err := c.Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("the agent ended with %v: %s", err, said)
	}
	<-c.Lost()
	_ = c.Close()
}

func get(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestCommandRefusesBadArguments(t *testing.T) {
	for name, args := range map[string][]string{
		"none": nil, "two": {"{}", "{}"}, "no JSON": {"hello"}, "no connection": {"{}"}, "not inherited": {`{"connection_fd":2}`},
	} {
		var said bytes.Buffer
		code := Command(t.Context(), args, Program{Stderr: &said})
		if code != diag.ExitUsage || said.Len() == 0 {
			t.Errorf("%s: exit code %d, said %q", name, code, &said)
		}
	}
}

// authority signs certificates for one test.
type authority struct {
	t    *testing.T
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.sign("ca", &x509.Certificate{
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

func (a *authority) sign(name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber, template.Subject = big.NewInt(1), pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, parentKey := a.cert, a.key
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".pem", "CERTIFICATE", der)
	a.write(name+".key", "PRIVATE KEY", secret)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func (a *authority) write(name, kind string, der []byte) {
	a.t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(filepath.Join(a.dir, name), text, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// end returns the files of one end that a signed.
func (a *authority) end(name string) TLS {
	a.sign(name, &x509.Certificate{
		DNSNames:    []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	})
	return TLS{
		Certificate: filepath.Join(a.dir, name+".pem"), Key: filepath.Join(a.dir, name+".key"),
		Authority: filepath.Join(a.dir, "ca.pem"),
	}
}

func TestMutualTLS(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	server, err := ours.end("vm-1").Config("")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := newTestServer(t, newScripted(), nil)
	served := make(chan error, 1)
	go func() { served <- s.ServeListener(ctx, tls.NewListener(listener, server)) }()

	stranger := theirs.end("controller")
	stranger.Authority = filepath.Join(ours.dir, "ca.pem") // it trusts the agent, and is not trusted
	for name, tt := range map[string]struct {
		files TLS
		vm    string
		ok    bool
	}{
		"ours":          {ours.end("controller"), "vm-1", true},
		"another VM":    {ours.end("controller"), "vm-2", false},
		"a stranger":    {stranger, "vm-1", false},
		"wrong trust":   {theirs.end("controller"), "vm-1", false},
		"no encryption": {TLS{}, "", false},
	} {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if tt.vm != "" {
			settings, err := tt.files.Config(tt.vm)
			if err != nil {
				t.Fatal(err)
			}
			conn = tls.Client(conn, settings)
		}
		c := NewClient(conn, ClientOptions{})
		if hello, err := c.Hello(t.Context()); (err == nil) != tt.ok {
			t.Errorf("%s: got %+v, %v", name, hello, err)
		}
		_ = c.Close()
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestListenNeedsCertificates(t *testing.T) {
	var said bytes.Buffer
	if code := Command(t.Context(), []string{`{"listen":"127.0.0.1:0"}`}, Program{Stderr: &said}); code == diag.ExitPass {
		t.Error("an agent listened to everybody")
	}
}
