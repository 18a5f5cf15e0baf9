package agentlink_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/agentlink"
	"github.com/braggdev/bragg/internal/trust"
)

// agent answers as the agent of a VM: it sends one byte on each connection and keeps it open.
func agent(t *testing.T, a *trust.Authority, vm string) (address string) {
	t.Helper()
	files, err := a.Agent(vm)
	if err != nil {
		t.Fatal(err)
	}
	config, err := trust.Server(files)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = c.Write([]byte{1})
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return l.Addr().String()
}

func newDialer(t *testing.T, vm string) (*agentlink.Dialer, *[]string) {
	t.Helper()
	authority, err := trust.New("run", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	at := agent(t, authority, vm)
	var heard []string
	d := &agentlink.Dialer{
		Authority: authority,
		AddressOf: func(context.Context, target.VM) (string, error) { return "127.0.0.1", nil },
		Heard:     func(id string) { heard = append(heard, id) },
		Dial: func(ctx context.Context, _ target.VM, address string) (net.Conn, error) {
			if address != "127.0.0.1:7401" {
				t.Errorf("dialled %s", address)
			}
			return new(net.Dialer).DialContext(ctx, "tcp", at)
		},
	}
	t.Cleanup(d.Close)
	return d, &heard
}

func TestHangUp(t *testing.T) {
	d, heard := newDialer(t, "OLTP-0001")
	c, err := d.DialAgent(t.Context(), target.VM{ID: "1", Name: "OLTP-0001"})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.(interface{ ConnectionState() tls.ConnectionState }); !ok {
		t.Error("the connection does not show that it is over a network")
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if len(*heard) != 2 { // the handshake and the byte
		t.Errorf("heard %q", *heard)
	}
	d.HangUp("2")
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatalf("hanging up on another VM ended the connection: %v", err)
	}
	d.HangUp("1")
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection outlived the power of its VM")
	}
	d.Close()
	if _, err := d.DialAgent(t.Context(), target.VM{ID: "1", Name: "OLTP-0001"}); !errors.Is(err, agentlink.ErrClosed) {
		t.Errorf("got %v from a closed dialer", err)
	}
}

// The agent of another VM at the address is not taken for the right one.
func TestAnotherAgent(t *testing.T) {
	d, _ := newDialer(t, "OLTP-0002")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := d.DialAgent(ctx, target.VM{ID: "1", Name: "OLTP-0001"})
	var user *diag.Error
	if !errors.As(err, &user) || user.Code != "agent-identity" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestStoppedVM(t *testing.T) {
	d, _ := newDialer(t, "OLTP-0001")
	d.MayAnswer = func(_ context.Context, vm target.VM, _ bool) error {
		return &target.StoppedError{VM: vm.Name, Reason: "it is powered off"}
	}
	_, err := d.DialAgent(t.Context(), target.VM{ID: "1", Name: "OLTP-0001"})
	var stopped *target.StoppedError
	if !errors.As(err, &stopped) || stopped.VM != "OLTP-0001" {
		t.Errorf("got %v", err)
	}
}
