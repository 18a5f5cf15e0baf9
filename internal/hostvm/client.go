package hostvm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/sshlink"
	"github.com/braggdev/bragg/internal/sshlink/rpc"
	"github.com/braggdev/bragg/internal/target"
)

// Client is the controller's half of one connection. Its methods may be called from several goroutines. VMs keep running
// after Close.
type Client struct {
	*rpc.Client
	place Place
}

// silenceMax is how long the other end may be silent before the connection is closed.
const silenceMax = 30 * time.Second

// Connect starts ssh and the program on a host.
func Connect(ctx context.Context, h sshlink.Host, r *sshlink.Remote, place Place) (*Client, error) {
	c, err := rpc.Dial(ctx, h, r, silenceMax)
	if err != nil {
		return nil, err
	}
	return &Client{c, place}, nil
}

// Call requests one operation and waits for the answer. If ctx ends first, the host cancels the operation.
func (c *Client) Call(ctx context.Context, r Request) (Reply, error) {
	stream, err := c.ask(ctx, r)
	if err != nil {
		return Reply{}, err
	}
	defer stream.Close()
	return answer(ctx, stream)
}

// codeStopped marks a target.StoppedError in a reply.
const codeStopped = "vm-stopped"

// Dial connects to the agent of a VM; it returns a target.StoppedError if the host reports that it has ended. Closing the
// connection does not end the agent.
func (c *Client) Dial(ctx context.Context, tag target.Tag, vm target.VM) (net.Conn, error) {
	stream, err := c.ask(ctx, Request{Operation: OpDial, Tag: tag, VMs: []target.VM{vm}})
	if err != nil {
		return nil, err
	}
	if _, err := answer(ctx, stream); err != nil {
		_ = stream.Close()
		var userErr *diag.Error
		if errors.As(err, &userErr) && userErr.Code == codeStopped {
			return nil, &target.StoppedError{VM: vm.Name, Reason: userErr.Message}
		}
		return nil, err
	}
	return stream, stream.SetDeadline(time.Time{})
}

// DiskCopy is a copy of a disk of From to the same disk of To on another host. To is powered off and its disk at least as
// large.
type DiskCopy struct {
	Tag      target.Tag
	From, To target.VM
	Disk     int
	Host     *Client // of To
}

// Copy copies a disk of a VM on this host.
func (c *Client) Copy(ctx context.Context, d DiskCopy) error {
	in, err := c.ask(ctx, Request{Operation: OpExport, Tag: d.Tag, VMs: []target.VM{d.From}, Disk: d.Disk})
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := d.Host.ask(ctx, Request{Operation: OpImport, Tag: d.Tag, VMs: []target.VM{d.To}, Disk: d.Disk})
	if err != nil {
		return err
	}
	defer out.Close()
	for _, stream := range []net.Conn{in, out} {
		if _, err := answer(ctx, stream); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = errors.Join(in.Close(), out.Close()) })
	defer stop()
	return carry(ctx, in, out)
}

// carry copies in to out and returns the final reply of the host. That may arrive long before the end, for example if the
// disk there is full: then the host stops reading, and the copy ends with the host's error.
func carry(ctx context.Context, in, out net.Conn) error {
	last := make(chan error, 1)
	go func() {
		_, err := answer(ctx, out)
		past := time.Unix(1, 0)
		_ = errors.Join(in.SetReadDeadline(past), out.SetWriteDeadline(past))
		last <- err
	}()
	_, broken := io.Copy(out, in)
	// A closed stream can still be read. If the source ended early, the close ends the wait of the other host.
	closed := out.Close()
	switch err := <-last; {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case broken != nil && !errors.Is(broken, yamux.ErrTimeout):
		return fmt.Errorf("%w: %w", rpc.ErrLost, broken)
	case errors.Is(err, rpc.ErrLost) && closed != nil:
		return fmt.Errorf("%w: %w", rpc.ErrLost, closed)
	default:
		return err
	}
}

func (c *Client) ask(ctx context.Context, r Request) (net.Conn, error) {
	r.Place = c.place
	return c.Open(ctx, r)
}

func answer(ctx context.Context, stream net.Conn) (Reply, error) {
	var reply Reply
	if err := rpc.Answer(ctx, stream, &reply); err != nil {
		return Reply{}, err
	}
	if reply.Error != nil {
		return Reply{}, reply.Error.Err()
	}
	return reply, nil
}
