package libvirt

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// node is one host with its connection.
type node struct {
	id     string
	config target.NodeConfig
	uri    string
	tunnel *tunnel // nil: virsh reaches the host by itself
	runner runner
	pool   string // name, as the target file spells it
	// files is held for writing while the pool is read anew, which libvirt refuses while volumes are being made.
	files sync.RWMutex
	// halted: a refresh of the pool failed, which may have stopped it.
	halted atomic.Bool

	mu     sync.Mutex
	known  *hostFacts // once the host has answered
	probe  accelerator
	silent bool // it did not answer the last time
}

// hostFacts are what a host says of itself; they do not change while we look at it.
type hostFacts struct {
	uuid      string
	cpus      int
	megahertz float64
	ramBytes  int64
	software  string // "QEMU 7.2.22, libvirt 9.0.0"
}

// run makes one call on the node and names it in errors.
func (n *node) run(ctx context.Context, c call) ([]byte, error) {
	began := time.Now()
	var out []byte
	uri, err := n.reach(ctx, c.limit)
	if err == nil {
		c.uri, c.limit = uri, c.limit-time.Since(began)
		out, err = n.runner(ctx, c)
	}
	if err != nil {
		return nil, fmt.Errorf("node %q: %w", n.id, err)
	}
	return out, nil
}

// reach returns the URI that virsh is given.
func (n *node) reach(ctx context.Context, limit time.Duration) (string, error) {
	if n.tunnel == nil {
		return n.uri, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimedOut)
	defer cancel()
	return n.tunnel.reach(ctx)
}

// query makes a call that changes nothing.
func (n *node) query(ctx context.Context, args ...string) ([]byte, error) {
	var out []byte
	err := patiently(ctx, func(ctx context.Context) error {
		var err error
		out, err = n.run(ctx, call{args: args, limit: queryLimit})
		return err
	}, nil)
	return out, err
}

// change makes a call once that changes something.
func (n *node) change(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	return n.run(ctx, call{args: args, stdin: stdin, limit: changeLimit})
}

// host returns what the host says of itself.
func (n *node) host(ctx context.Context) (hostFacts, error) {
	n.mu.Lock()
	known := n.known
	n.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	var f hostFacts
	info, err := n.query(ctx, "nodeinfo")
	if err != nil {
		return f, err
	}
	memory, err := n.query(ctx, "nodememstats") // nodeinfo leaves out what belongs to no NUMA node
	if err != nil {
		return f, err
	}
	capabilities, err := n.query(ctx, "capabilities")
	if err != nil {
		return f, err
	}
	version, err := n.query(ctx, "version")
	if err != nil {
		return f, err
	}
	if f, err = parseHost(info, memory, capabilities, version); err != nil {
		return f, fmt.Errorf("node %q: %w", n.id, err)
	}
	n.mu.Lock()
	n.known = &f
	n.mu.Unlock()
	return f, nil
}

func parseHost(info, memory, capabilities, version []byte) (hostFacts, error) {
	pairs := parsePairs(info)
	f := hostFacts{
		cpus: int(quantity(pairs["CPU(s)"])), megahertz: quantity(pairs["CPU frequency"]),
		ramBytes: int64(quantity(parsePairs(memory)["total"])) * 1024,
	}
	var c struct {
		UUID string `xml:"host>uuid"`
	}
	if err := xml.Unmarshal(capabilities, &c); err != nil {
		return f, fmt.Errorf("read capabilities: %w", err)
	}
	if f.uuid = strings.TrimSpace(c.UUID); f.uuid == "" {
		return f, errors.New("read capabilities: the host has no UUID")
	}
	pairs = parsePairs(version)
	f.software = strings.TrimPrefix(pairs["Running hypervisor"]+", "+pairs["Using library"], ", ")
	return f, nil
}

// sights lists all domains of the node, whosever they are. A node that was silent before gets one short chance: while a
// host is switched off, every look at the target would take as long as a network takes to give up.
func (n *node) sights(ctx context.Context) ([]sight, error) {
	n.mu.Lock()
	silent := n.silent
	n.mu.Unlock()
	var all []sight
	var err error
	if silent {
		all, err = n.look(ctx, silentLimit)
	} else {
		err = patiently(ctx, func(ctx context.Context) error {
			var err error
			all, err = n.look(ctx, queryLimit)
			return err
		}, nil)
	}
	if ctx.Err() == nil {
		n.mu.Lock()
		n.silent = isLost(err)
		n.mu.Unlock()
	}
	return all, err
}

// sightsPerCall bounds the length of one argument.
const sightsPerCall = 1000

func (n *node) look(ctx context.Context, limit time.Duration) ([]sight, error) {
	list, err := n.run(ctx, call{args: []string{"list", "--all", "--uuid"}, limit: limit})
	if err != nil {
		return nil, err
	}
	var ids []string
	for line := range strings.Lines(string(list)) {
		if id := strings.TrimSpace(line); idText.MatchString(id) {
			ids = append(ids, id)
		}
	}
	var all []sight
	for part := range slices.Chunk(ids, sightsPerCall) {
		found, err := n.describe(ctx, part, queryLimit)
		all = append(all, found...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// describe returns domains by their UUIDs, of which there are at most sightsPerCall.
func (n *node) describe(ctx context.Context, ids []string, limit time.Duration) ([]sight, error) {
	commands := make([]string, len(ids))
	for i, id := range ids {
		commands[i] = "dumpxml --domain=" + id
	}
	// One argument is a script of several commands for virsh. It holds nothing but UUIDs that were looked at.
	out, err := n.run(ctx, call{args: []string{strings.Join(commands, "; ")}, limit: limit})
	if isGone(err) {
		return nil, errors.Join(errAgain, err)
	}
	if err != nil {
		return nil, err
	}
	found, err := parseSights(out)
	if err == nil && len(found) != len(ids) {
		// One of them went while we looked: virsh goes on after an error, and its exit code is that of the last command.
		err = fmt.Errorf("%w: node %q described %d domains of %d", errAgain, n.id, len(found), len(ids))
	}
	return found, err
}
