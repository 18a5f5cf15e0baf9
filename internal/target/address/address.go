// Package address assigns the addresses of a target file's range to VMs. It does not connect to agents.
//
//	Config.Addresses ──▶ ReadRange ──▶ Allocator.Reserve ──▶ addresses that are free and do not answer
package address

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// Ports of agents in VMs: for the controller, and for their metrics.
const (
	AgentPort   = 7401
	MetricsPort = 7402
)

// answerMax is how long a host on the network of the VMs may take to accept or refuse a connection.
const answerMax = 500 * time.Millisecond

// Range is the addresses that a target file reserves for VMs; the zero value is none: VMs use DHCP.
type Range struct {
	First, Last netip.Addr
	Prefix      int
	Gateway     string
}

// ReadRange reads the range of a target file.
func ReadRange(a target.Addresses) (Range, error) {
	r := Range{Prefix: a.Prefix, Gateway: a.Gateway}
	if a.First == "" {
		return r, nil
	}
	var errs [2]error
	r.First, errs[0] = netip.ParseAddr(a.First)
	r.Last, errs[1] = netip.ParseAddr(a.Last)
	if errs[0] != nil || errs[1] != nil {
		return Range{}, fmt.Errorf("addresses: invalid range %q to %q", a.First, a.Last)
	}
	return r, nil
}

// CountMax bounds what counts as a number of addresses: a network may span more than any run has VMs.
const CountMax = 1 << 20

// Between returns how many addresses lie from first to last, both included, at most CountMax; 0 where that is not a range.
func Between(first, last netip.Addr) int {
	if !first.IsValid() || !last.IsValid() || first.Is4() != last.Is4() || last.Less(first) {
		return 0
	}
	a, b := first.As16(), last.As16()
	var gap uint64
	for i := range a {
		if gap > CountMax {
			return CountMax
		}
		gap = gap<<8 + uint64(b[i]) - uint64(a[i]) // borrows even out in the next byte
	}
	return int(min(gap+1, CountMax))
}

// Count returns the number of addresses for VMs in the range.
func (r Range) Count() int {
	count := Between(r.First, r.Last)
	if gateway, err := netip.ParseAddr(r.Gateway); err == nil && count > 0 && !gateway.Less(r.First) && !r.Last.Less(gateway) {
		count--
	}
	return count
}

// Allocator assigns the addresses of a range.
type Allocator struct {
	Range Range

	mu       sync.Mutex
	reserved map[netip.Addr]string // to the VM, while it is being made
	skipped  []target.Fact         // addresses that answered
}

// Reserve picks addresses for new VMs by their ids: none that is in use by VMs of Bragg or reserved by another call, nor one that
// answers. Without a range all are "". Reservations last until Release; an error leaves none.
func (a *Allocator) Reserve(ctx context.Context, used []string, ids []string) ([]string, error) {
	if !a.Range.First.IsValid() {
		return make([]string, len(ids)), nil
	}
	taken := map[netip.Addr]bool{}
	for _, text := range used {
		if address, err := netip.ParseAddr(text); err == nil {
			taken[address] = true
		}
	}
	addresses := make([]string, len(ids))
	next := a.Range.First
	for {
		var open []int // VMs without an address
		for i, id := range ids {
			if addresses[i] != "" {
				continue
			}
			address, err := a.next(ctx, &next, id, taken)
			if err != nil {
				a.Release(ids...)
				return nil, err
			}
			addresses[i], open = address.String(), append(open, i)
		}
		if len(open) == 0 {
			return addresses, nil
		}
		if err := a.skip(ctx, addresses, open); err != nil {
			a.Release(ids...)
			return nil, err
		}
	}
}

// skip takes back the addresses of open that answer.
func (a *Allocator) skip(ctx context.Context, addresses []string, open []int) error {
	used := make([]bool, len(open))
	err := target.Each(ctx, len(open), func(i int) error {
		used[i] = Answers(ctx, addresses[open[i]])
		return nil
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, yes := range used {
		if yes {
			fact := target.Fact{Name: "address " + addresses[open[i]], Value: "skipped: already in use by another host"}
			if !slices.Contains(a.skipped, fact) {
				a.skipped = append(a.skipped, fact)
			}
			addresses[open[i]] = ""
		}
	}
	return err
}

// next reserves the next free address of the range for a VM.
func (a *Allocator) next(ctx context.Context, next *netip.Addr, id string, taken map[netip.Addr]bool) (netip.Addr, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reserved == nil {
		a.reserved = map[netip.Addr]string{}
	}
	for address := *next; address.IsValid() && !a.Range.Last.Less(address); address = address.Next() {
		*next = address.Next()
		if _, reserved := a.reserved[address]; !reserved && !taken[address] {
			a.reserved[address] = id
			return address, nil
		}
	}
	if ctx.Err() != nil {
		return netip.Addr{}, context.Cause(ctx)
	}
	return netip.Addr{}, &diag.Error{
		Code: "target-no-address", Exit: diag.ExitUnavailable,
		Message: fmt.Sprintf("give a VM an address: all from %s to %s are in use", a.Range.First, a.Range.Last),
		Hint:    "reserve a larger range in \"addresses\" of the target file",
	}
}

// Release ends the reservations of VMs.
func (a *Allocator) Release(ids ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for address, holder := range a.reserved {
		if slices.Contains(ids, holder) {
			delete(a.reserved, address)
		}
	}
}

// Facts names the addresses of the range that other hosts use.
func (a *Allocator) Facts() []target.Fact {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.skipped)
}

// Answers reports whether a host has the address. A refused connection is an answer too.
func Answers(ctx context.Context, address string) bool {
	d := net.Dialer{Timeout: answerMax}
	c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(AgentPort)))
	if err == nil {
		_ = c.Close()
		return true
	}
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET)
}
