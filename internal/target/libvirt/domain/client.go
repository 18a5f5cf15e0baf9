package domain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
	"github.com/braggdev/bragg/internal/wait"
)

// Client acts on the domains of one host.
type Client struct {
	Host *virsh.Host

	mu     sync.Mutex
	silent bool        // the host did not answer the last time
	probed Accelerator // the zero value: not yet
}

// NewClient returns the client of a host. It makes no calls.
func NewClient(h *virsh.Host) *Client { return &Client{Host: h} }

// Silent reports whether the host did not answer when its domains were last listed.
func (c *Client) Silent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.silent
}

// All lists all domains of the host, ours or not. A host that was silent before gets one short attempt: while a host is
// switched off, every survey would otherwise take as long as the network takes to time out.
func (c *Client) All(ctx context.Context) ([]Info, error) {
	var all []Info
	var err error
	if c.Silent() {
		all, err = c.list(ctx, virsh.SilentLimit)
	} else {
		err = virsh.Retry(ctx, func(ctx context.Context) error {
			all, err = c.list(ctx, virsh.QueryLimit)
			return err
		}, nil)
	}
	if ctx.Err() == nil {
		c.mu.Lock()
		c.silent = virsh.IsLost(err)
		c.mu.Unlock()
	}
	return all, err
}

func (c *Client) list(ctx context.Context, limit time.Duration) ([]Info, error) {
	list, err := c.Host.Run(ctx, virsh.Call{Args: []string{"list", "--all", "--uuid"}, Limit: limit})
	if err != nil {
		return nil, err
	}
	var ids []string
	for line := range strings.Lines(string(list)) {
		if id := strings.TrimSpace(line); virsh.IsUUID(id) {
			ids = append(ids, id)
		}
	}
	return c.Describe(ctx, ids, virsh.QueryLimit)
}

// DescribeMax limits the domains per call, and thus the length of one argument.
const DescribeMax = 1000

// Describe returns domains by their UUIDs. limit is that of each call. Beside an error it returns what it found.
func (c *Client) Describe(ctx context.Context, ids []string, limit time.Duration) ([]Info, error) {
	var all []Info
	for part := range slices.Chunk(ids, DescribeMax) {
		// One argument is a script of several commands for virsh. It holds UUIDs that were checked, and nothing else.
		script := "dumpxml --domain=" + strings.Join(part, "; dumpxml --domain=")
		out, err := c.Host.Run(ctx, virsh.Call{Args: []string{script}, Limit: limit})
		if virsh.IsGone(err) {
			err = errors.Join(virsh.ErrAgain, err)
		}
		if err != nil {
			return all, err
		}
		found, err := Parse(out)
		all = append(all, found...)
		if err == nil && len(found) != len(part) {
			// One of them went meanwhile: virsh continues after an error, and its exit code is that of the last command.
			err = fmt.Errorf("%w: node %q described %d domains of %d", virsh.ErrAgain, c.Host.ID, len(found), len(part))
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// Get returns one domain.
func (c *Client) Get(ctx context.Context, id string) (Info, error) {
	out, err := c.Host.Query(ctx, "dumpxml", "--domain="+id)
	if err != nil {
		return Info{}, err
	}
	found, err := Parse(out)
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("node %q: %d domains described, want one", c.Host.ID, len(found))
	}
	if err != nil {
		return Info{}, err
	}
	return found[0], nil
}

// Define creates a persistent domain. Because an answer may be lost, an existing domain with the mark of d counts as
// success.
func (c *Client) Define(ctx context.Context, d Domain) error {
	text := d.Text()
	return virsh.Retry(ctx, func(ctx context.Context) error {
		_, err := c.Host.Change(ctx, text, "define", "--file=/dev/stdin")
		return err
	}, func(ctx context.Context) bool {
		one, err := c.Get(ctx, d.UUID)
		return err == nil && one.Mark() == d.Metadata.Mark
	})
}

// Start powers a domain on; a running one is skipped.
func (c *Client) Start(ctx context.Context, id string) error {
	_, err := c.Host.Apply(ctx, nil, "start", "--domain="+id)
	if virsh.IsUnchanged(err) {
		return nil
	}
	return err
}

// Destroy cuts the power of a domain; one that is off or gone is skipped.
func (c *Client) Destroy(ctx context.Context, id string) error {
	_, err := c.Host.Apply(ctx, nil, "destroy", "--domain="+id)
	if virsh.IsGone(err) || virsh.IsUnchanged(err) {
		return nil
	}
	return err
}

// Undefine removes a domain, if it exists, and no volumes.
func (c *Client) Undefine(ctx context.Context, id string) error {
	_, err := c.Host.Apply(ctx, nil, "undefine", "--domain="+id)
	if virsh.IsGone(err) {
		return nil
	}
	return err
}

// SetAutostart makes a domain start with its host, or not.
func (c *Client) SetAutostart(ctx context.Context, id string, enabled bool) error {
	args := []string{"autostart", "--domain=" + id}
	if !enabled {
		args = append(args, "--disable")
	}
	_, err := c.Host.Apply(ctx, nil, args...)
	return err
}

// How long a guest may take to shut down, how often it is polled, and when the button is pressed again: some guests need that.
const (
	shutdownMax   = 2 * time.Minute
	shutdownPoll  = 500 * time.Millisecond
	shutdownAgain = 20 * time.Second
)

// Shutdown requests an ACPI shutdown of a guest and waits for it. A guest that does not shut down stays on, and an
// error is returned.
func (c *Client) Shutdown(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, shutdownMax, errors.New("the guest does not shut down"))
	defer cancel()
	pressed := time.Time{}
	for {
		if time.Since(pressed) > shutdownAgain {
			_, err := c.Host.Change(ctx, nil, "shutdown", "--domain="+id, "--mode=acpi")
			switch {
			case virsh.IsGone(err) || virsh.IsUnchanged(err):
				return nil
			case err != nil && !virsh.IsLost(err) && !virsh.IsBusy(err):
				return err
			}
			pressed = time.Now()
		}
		if err := wait.For(ctx, shutdownPoll); err != nil {
			return err
		}
		one, err := c.Get(ctx, id)
		if virsh.IsGone(err) || err == nil && !one.Active() {
			return nil
		}
	}
}

// State is the state of a domain and its reason, as virsh domstate prints them: "shut off (crashed)".
func (c *Client) State(ctx context.Context, id string) (string, error) {
	text, err := c.Host.Query(ctx, "domstate", "--reason", "--domain="+id)
	return strings.TrimSpace(string(text)), err
}
