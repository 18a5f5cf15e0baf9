package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// agentPort is where the agents of VMs listen.
const agentPort = 7401

// answersWithin is how long a host on the network of the VMs may take to say that a port is open or closed.
const answersWithin = 500 * time.Millisecond

// reserve picks addresses of the target file's range for new VMs: none that a VM of ours has on any node, that another
// call is about to give away, or at which somebody answers. It returns none where VMs ask a DHCP server.
func (t *Target) reserve(ctx context.Context, s *survey, ids []string) ([]string, error) {
	if !t.settings.first.IsValid() {
		return make([]string, len(ids)), nil
	}
	taken := map[netip.Addr]bool{}
	for _, one := range s.vms {
		for _, text := range one.record.VM.Addresses {
			if a, err := netip.ParseAddr(text); err == nil {
				taken[a] = true
			}
		}
	}
	addresses := make([]string, len(ids))
	next := t.settings.first
	for {
		var open []int // VMs without an address
		for i, id := range ids {
			if addresses[i] != "" {
				continue
			}
			a, err := t.promise(ctx, &next, id, taken)
			if err != nil {
				t.release(ids...)
				return nil, err
			}
			addresses[i], open = a.String(), append(open, i)
		}
		if len(open) == 0 {
			return addresses, nil
		}
		if err := t.leaveOut(ctx, addresses, open, taken); err != nil {
			t.release(ids...)
			return nil, err
		}
	}
}

// leaveOut takes addresses away again at which somebody answers.
func (t *Target) leaveOut(ctx context.Context, addresses []string, open []int, taken map[netip.Addr]bool) error {
	used := make([]bool, len(open))
	err := target.Each(ctx, len(open), func(i int) error {
		used[i] = answers(ctx, addresses[open[i]])
		return nil
	})
	for i, yes := range used {
		if yes {
			a := addresses[open[i]]
			t.note("address "+a, "left out: somebody answers there already")
			taken[netip.MustParseAddr(a)] = true
			addresses[open[i]] = ""
		}
	}
	return err
}

// promise keeps the next free address of the range for a VM.
func (t *Target) promise(ctx context.Context, next *netip.Addr, id string, taken map[netip.Addr]bool) (netip.Addr, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for a := *next; a.IsValid() && !t.settings.last.Less(a); a = a.Next() {
		*next = a.Next()
		if _, promised := t.reserved[a]; !promised && !taken[a] {
			t.reserved[a] = id
			return a, nil
		}
	}
	if ctx.Err() != nil {
		return netip.Addr{}, context.Cause(ctx)
	}
	return netip.Addr{}, &diag.Error{
		Code: "libvirt-no-address", Exit: diag.ExitUnavailable,
		Message: fmt.Sprintf("give a VM an address: all from %s to %s are in use", t.settings.first, t.settings.last),
		Hint:    "reserve a larger range in \"addresses\" of the target file",
	}
}

// release ends the reservations of VMs.
func (t *Target) release(ids ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		for a, holder := range t.reserved {
			if holder == id {
				delete(t.reserved, a)
			}
		}
	}
}

// answers tells whether a host has the address. A port that refuses is an answer too.
func answers(ctx context.Context, address string) bool {
	d := net.Dialer{Timeout: answersWithin}
	c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(agentPort)))
	if err == nil {
		_ = c.Close()
		return true
	}
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET)
}

// lookUp asks the node which address a running VM got: from the leases of its own networks, or else from its table of
// neighbours.
func (n *node) lookUp(ctx context.Context, id string) (string, error) {
	var errs []error
	for _, source := range []string{"lease", "arp"} {
		out, err := n.query(ctx, "domifaddr", "--domain="+id, "--source="+source)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if a := addressOf(out); a != "" {
			return a, nil
		}
	}
	return "", errors.Join(errs...)
}

// addressOf reads the output of virsh domifaddr: name, MAC, protocol and address with its prefix on each line.
func addressOf(text []byte) string {
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 4 || fields[2] != "ipv4" && fields[2] != "ipv6" {
			continue
		}
		word, _, _ := strings.Cut(fields[3], "/")
		if a, err := netip.ParseAddr(word); err == nil && !a.IsLinkLocalUnicast() && !a.IsUnspecified() {
			return a.String()
		}
	}
	return ""
}
