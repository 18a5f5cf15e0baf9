package trust_test

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/trust"
)

func authority(t *testing.T, run string, life time.Duration) *trust.Authority {
	t.Helper()
	a, err := trust.New(run, life)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func agentOf(t *testing.T, a *trust.Authority, vm string) trust.Files {
	t.Helper()
	f, err := a.Agent(vm)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// connected returns both ends of a connection that buffers: two ends that write to a pipe at once would wait for each other.
func connected(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return near, far
}

// speak connects client to server and reports whether a byte of the client's reached the server.
func speak(t *testing.T, server, client *tls.Config) bool {
	t.Helper()
	near, far := connected(t)
	defer near.Close()
	heard := make(chan bool, 1)
	go func() {
		defer far.Close()
		conn := tls.Server(far, server)
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		n, _ := io.ReadFull(conn, make([]byte, 1))
		heard <- n == 1
	}()
	conn := tls.Client(near, client)
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	go func() {
		if _, err := conn.Write([]byte{1}); err == nil {
			_, _ = io.ReadAll(conn) // what the server says when it refuses
		}
		_ = near.Close()
	}()
	return <-heard
}

func TestOnlyTheRightEndsMeet(t *testing.T) {
	ours, theirs := authority(t, "run-1", time.Hour), authority(t, "run-1", time.Hour)
	const vm = "../we/ird: ünïcode\x00"
	server, err := trust.Server(agentOf(t, ours, vm))
	if err != nil {
		t.Fatal(err)
	}
	agentAsClient := agentOf(t, ours, "other")
	pair, err := tls.X509KeyPair(agentAsClient.Certificate, agentAsClient.Key)
	if err != nil {
		t.Fatal(err)
	}
	impostor := ours.Controller(vm)
	impostor.Certificates = []tls.Certificate{pair}
	anonymous := ours.Controller(vm)
	anonymous.Certificates = nil
	old := ours.Controller(vm)
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	for name, c := range map[string]struct {
		client *tls.Config
		want   bool
	}{
		"right":                     {ours.Controller(vm), true},
		"another VM is expected":    {ours.Controller("we"), false},
		"another run's authority":   {theirs.Controller(vm), false},
		"an agent as controller":    {impostor, false},
		"without a certificate":     {anonymous, false},
		"an older version of TLS":   {old, false},
		"a VM without a name meant": {ours.Controller(""), false},
	} {
		if got := speak(t, server, c.client); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// TestExpired: what has expired is refused, whichever end is old.
func TestExpired(t *testing.T) {
	past := authority(t, "run-1", -48*time.Hour)
	server, err := trust.Server(agentOf(t, past, "vm"))
	if err != nil {
		t.Fatal(err)
	}
	if speak(t, server, past.Controller("vm")) {
		t.Error("certificates that expired are taken")
	}
}

func TestBadFiles(t *testing.T) {
	good := agentOf(t, authority(t, "run 2/%", time.Hour), "vm")
	if _, err := trust.Server(good); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]trust.Files{
		"nothing":      {},
		"no authority": {Certificate: good.Certificate, Key: good.Key},
		"other key":    {Certificate: good.Certificate, Key: agentOf(t, authority(t, "r", time.Hour), "vm").Key, Authority: good.Authority},
		"no run":       {Certificate: good.Authority, Key: good.Key, Authority: good.Authority},
	} {
		if _, err := trust.Server(f); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
