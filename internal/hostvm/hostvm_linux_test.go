package hostvm

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/sshlink/rpc"
	"github.com/braggdev/bragg/internal/target"
)

func testTag() target.Tag {
	return target.Tag{Controller: "c", Run: "r", Nonce: strings.Repeat("ab", 16)}
}

// newHost serves a folder as a host of that name, over a connection in memory, and returns the client and what ends it.
func newHost(t *testing.T, name string) *Client {
	t.Helper()
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- serveConn(t.Context(), Program{Version: "test"}, there) }()
	over, err := rpc.New(here, silenceMax)
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{over, Place{Folder: t.TempDir(), NodeID: name, Address: "127.0.0.1"}}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *Client) create(t *testing.T, name string, diskBytes int64) target.VM {
	t.Helper()
	reply, err := c.Call(t.Context(), Request{Operation: OpCreate, Tag: testTag(), Specs: []target.VMSpec{
		{Name: name, NodeID: c.place.NodeID, VCPUs: 1, DiskBytes: []int64{diskBytes}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return reply.VMs[0]
}

// A disk travels whole; a host that gives up half-way ends the copy with its reason, however much is still to come.
func TestCopy(t *testing.T) {
	t.Parallel()
	a, b := newHost(t, "a"), newHost(t, "b")
	data := make([]byte, 16<<20)
	for i := range data {
		data[i] = byte(i>>12) | 1 // no holes
	}
	from := a.create(t, "from", int64(len(data)))
	if err := os.WriteFile(from.Disks[0].Path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	to := b.create(t, "to", int64(len(data)))
	if err := a.Copy(t.Context(), DiskCopy{Tag: testTag(), From: from, To: to, Host: b}); err != nil {
		t.Fatal(err)
	}
	if copied, err := os.ReadFile(to.Disks[0].Path); err != nil || string(copied) != string(data) {
		t.Errorf("%d bytes arrived of %d, %v", len(copied), len(data), err)
	}
	small := b.create(t, "small", 1<<20)
	err := a.Copy(t.Context(), DiskCopy{Tag: testTag(), From: from, To: small, Host: b})
	if err == nil || errors.Is(err, rpc.ErrLost) || !strings.Contains(err.Error(), "outside of a disk") {
		t.Errorf("a host that gives up: %v", err)
	}
	if _, err := b.Call(t.Context(), Request{Operation: OpInfo}); err != nil {
		t.Errorf("the connection after that: %v", err)
	}
	// What the source cannot send is not waited for either.
	err = a.Copy(t.Context(), DiskCopy{Tag: testTag(), From: from, To: small, Disk: 7, Host: b})
	if err == nil {
		t.Error("a disk that is not there was copied")
	}
}

// A caller who gives up gets its own reason.
func TestCopyIsGivenUp(t *testing.T) {
	t.Parallel()
	mine, theirs := net.Pipe() // nothing ever comes out of it
	defer mine.Close()
	defer theirs.Close()
	silent, silentThere := net.Pipe()
	defer silent.Close()
	defer silentThere.Close()
	why := errors.New("the user pressed a key")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- carry(ctx, mine, silent) }()
	cancel(why)
	_ = mine.SetReadDeadline(time.Unix(1, 0)) // as Copy does by closing
	if err := <-ended; !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

// A host on which too many operations are under way refuses a further one, and the caller receives its reason.
func TestRefusedCall(t *testing.T) {
	t.Parallel()
	const most = 1024 // streams of one connection, in package rpc
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- rpc.Serve(t.Context(), there, silenceMax, func(ctx context.Context, _ []byte, _ net.Conn) { <-ctx.Done() })
	}()
	over, err := rpc.New(here, silenceMax)
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{over, Place{}}
	for range most {
		if _, err := c.Open(t.Context(), Request{Operation: OpDial}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = c.Call(ctx, Request{Operation: OpCreate})
	var userErr *diag.Error
	if !errors.As(err, &userErr) || userErr.Code != "host-busy" || userErr.Exit != diag.ExitUnavailable || userErr.Hint == "" ||
		!strings.HasPrefix(userErr.Message, "create: ") {
		t.Errorf("got %#v", err)
	}
	if err := errors.Join(c.Close(), <-served); err != nil {
		t.Error(err)
	}
}
