package virsh

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Host is the libvirt of one host.
type Host struct {
	ID string // of the node, for messages

	uri    string
	tunnel *tunnel // nil: virsh reaches the host by itself
	runner Runner

	mu    sync.Mutex
	facts *Facts // once the host has answered
}

// NewHost returns the host at a connection URI, which it checks; run executes the calls. It does not connect.
func NewHost(id, uri string, run Runner) (*Host, error) {
	uri, err := checkURI(uri)
	if err != nil {
		return nil, fmt.Errorf("node %q: %w", id, err)
	}
	tunnel, err := newTunnel(uri, run)
	if err != nil {
		return nil, fmt.Errorf("node %q: %w", id, err)
	}
	return &Host{ID: id, uri: uri, tunnel: tunnel, runner: run}, nil
}

// Run makes one call on the host, which errors name.
func (h *Host) Run(ctx context.Context, c Call) ([]byte, error) {
	began := time.Now()
	uri, err := h.Reach(ctx, c.Limit)
	if err != nil {
		return nil, err
	}
	c.URI, c.Limit = uri, c.Limit-time.Since(began)
	out, err := h.runner(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("node %q: %w", h.ID, err)
	}
	return out, nil
}

// Reach returns the current URI for virsh, which changes with each new connection of ssh.
func (h *Host) Reach(ctx context.Context, limit time.Duration) (string, error) {
	if h.tunnel == nil {
		return h.uri, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrTimedOut)
	defer cancel()
	uri, err := h.tunnel.reach(ctx)
	if err != nil {
		return "", fmt.Errorf("node %q: %w", h.ID, err)
	}
	return uri, nil
}

// Query makes a read-only call.
func (h *Host) Query(ctx context.Context, args ...string) ([]byte, error) {
	return h.retry(ctx, Call{Args: args, Limit: QueryLimit})
}

// Apply makes a call that changes state and may be repeated.
func (h *Host) Apply(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	return h.retry(ctx, Call{Args: args, Stdin: stdin, Limit: ChangeLimit})
}

func (h *Host) retry(ctx context.Context, c Call) (out []byte, err error) {
	err = Retry(ctx, func(ctx context.Context) error {
		out, err = h.Run(ctx, c)
		return err
	}, nil)
	return out, err
}

// Change makes a call that changes state, once.
func (h *Host) Change(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	return h.Run(ctx, Call{Args: args, Stdin: stdin, Limit: ChangeLimit})
}

// Drop ends the connection to a host that lost its power, which the network does not report. The next call connects again.
func (h *Host) Drop() { h.tunnel.drop() }

// Close ends the connection for good.
func (h *Host) Close() { h.tunnel.close() }

// Facts are properties that a host reports; they do not change while it is up.
type Facts struct {
	UUID      string
	CPUs      int
	Megahertz float64
	RAMBytes  int64
	Software  string // "QEMU 7.2.22, libvirt 9.0.0"
}

// Facts queries the host once.
func (h *Host) Facts(ctx context.Context) (Facts, error) {
	h.mu.Lock()
	known := h.facts
	h.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	var answers [4][]byte
	// nodeinfo leaves out memory that belongs to no NUMA node.
	for i, command := range []string{"nodeinfo", "nodememstats", "capabilities", "version"} {
		var err error
		if answers[i], err = h.Query(ctx, command); err != nil {
			return Facts{}, err
		}
	}
	f, err := parseFacts(answers[0], answers[1], answers[2], answers[3])
	if err != nil {
		return f, fmt.Errorf("node %q: %w", h.ID, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.facts = &f
	return f, nil
}

func parseFacts(info, memory, capabilities, version []byte) (Facts, error) {
	pairs := ParsePairs(info)
	f := Facts{
		CPUs: int(Quantity(pairs["CPU(s)"])), Megahertz: Quantity(pairs["CPU frequency"]),
		RAMBytes: int64(Quantity(ParsePairs(memory)["total"])) * 1024,
	}
	var c struct {
		UUID string `xml:"host>uuid"`
	}
	if err := xml.Unmarshal(capabilities, &c); err != nil {
		return f, fmt.Errorf("read capabilities: %w", err)
	}
	if f.UUID = strings.TrimSpace(c.UUID); f.UUID == "" {
		return f, errors.New("read capabilities: the host has no UUID")
	}
	pairs = ParsePairs(version)
	f.Software = strings.TrimPrefix(pairs["Running hypervisor"]+", "+pairs["Using library"], ", ")
	return f, nil
}

var uuidText = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// IsUUID reports whether a text is a UUID as libvirt prints it.
func IsUUID(text string) bool { return uuidText.MatchString(text) }

// ParsePairs reads lines of "name: value", as virsh nodeinfo and its relatives print them. Lines without a colon are left out.
func ParsePairs(text []byte) map[string]string {
	pairs := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			pairs[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return pairs
}

// Quantity reads the number at the beginning of a value like "24619488 KiB"; 0 where there is none.
func Quantity(value string) float64 {
	word, _, _ := strings.Cut(value, " ")
	n, err := strconv.ParseFloat(word, 64)
	if err != nil || n < 0 || n > 1e18 {
		return 0
	}
	return n
}

// Through returns the option of ssh that reaches machines by way of this host; none if it is not reached by ssh itself.
func (h *Host) Through() []string {
	if h.tunnel == nil {
		return nil
	}
	return []string{"ProxyCommand=" + h.tunnel.host.Relay(h.tunnel.options)}
}
