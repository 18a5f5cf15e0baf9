package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab/chassis"
	"github.com/braggdev/bragg/internal/wait"
)

// HostStatus is the state of a host, reported by the keeper.
type HostStatus struct {
	Name    string        `json:"name"`
	Power   chassis.Power `json:"power"`
	Up      bool          `json:"up"`                // its servers have answered since it was switched on
	Process int           `json:"process,omitempty"` // its first process, as the keeper numbers them
	Fault   string        `json:"fault,omitempty"`   // what crashed; it has power, and no operating system
}

// controlTimeLimit bounds one request; the longest is a power cut while a disk is slow.
const controlTimeLimit = 5 * time.Minute

const controlBytesMax = 1 << 20

// Status asks the keeper for the state of all hosts.
func (l *Lab) Status(ctx context.Context) ([]HostStatus, error) {
	var out []HostStatus
	return out, l.ask(ctx, http.MethodGet, "/hosts", &out)
}

// Reset changes the power of a host without its BMC. It returns when power is off or on.
func (l *Lab) Reset(ctx context.Context, name string, kind chassis.Reset) error {
	if _, err := l.Host(name); err != nil {
		return err
	}
	return l.ask(ctx, http.MethodPost, "/hosts/"+url.PathEscape(name)+"/reset?kind="+url.QueryEscape(string(kind)), nil)
}

// Link connects or disconnects the network of a host.
func (l *Lab) Link(ctx context.Context, name string, up bool) error {
	if _, err := l.Host(name); err != nil {
		return err
	}
	return l.ask(ctx, http.MethodPost, fmt.Sprintf("/hosts/%s/link?up=%t", url.PathEscape(name), up), nil)
}

// WaitUp returns when the servers of a host that is on answer.
func (l *Lab) WaitUp(ctx context.Context, name string) error {
	for {
		all, err := l.Status(ctx)
		if err != nil {
			return err
		}
		for _, h := range all {
			if h.Name == name && h.Up {
				return nil
			}
			if h.Name == name && h.Fault != "" {
				return fmt.Errorf("host %q crashed: %s", name, h.Fault)
			}
		}
		if wait.For(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("wait for host %q: %w", name, ctx.Err())
		}
	}
}

func (l *Lab) ask(ctx context.Context, method, path string, into any) (err error) {
	ctx, cancel := context.WithTimeout(ctx, controlTimeLimit)
	defer cancel()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", l.controlSocket())
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, method, "http://lab"+path, nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return &diag.Error{
			Code: "lab-silent", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("ask the keeper of lab %q", l.Name), Err: err,
			Hint: "bragg-lab status says whether it is up; " + l.log() + " is its log",
		}
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	text, err := io.ReadAll(io.LimitReader(response.Body, controlBytesMax))
	if err != nil {
		return fmt.Errorf("ask the keeper of lab %q: %w", l.Name, err)
	}
	if response.StatusCode != http.StatusOK {
		return &diag.Error{
			Code: "lab-refused", Exit: diag.ExitUndecided, Message: fmt.Sprintf("ask the keeper of lab %q: %s", l.Name, text),
		}
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
