package pool

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/target"
)

func TestIdentityCheck(t *testing.T) {
	hello := func(boot, machine, address string) wire.Hello {
		return wire.Hello{Boot: boot, MachineID: machine, Addresses: []string{address}}
	}
	const one, two = "0123456789abcdef0123456789abcdef", "1123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct {
		systems bool
		second  wire.Hello
		want    string
	}{
		"different":         {true, hello("b", two, "10.0.0.2"), ""},
		"same machine-id":   {true, hello("b", one, "10.0.0.2"), "machine-id: " + one},
		"same address":      {true, hello("b", two, "10.0.0.1"), "address: 10.0.0.1"},
		"same agent":        {true, hello("a", two, "10.0.0.2"), "agent: a"},
		"of one host":       {false, hello("b", one, "10.0.0.1"), ""},
		"one agent on host": {false, hello("a", one, "10.0.0.1"), "agent: a"},
	} {
		i := newIdentityCheck(c.systems)
		if err := i.check(target.VM{Name: "first"}, hello("a", one, "10.0.0.1")); err != nil {
			t.Errorf("%s: the first VM: %v", name, err)
		}
		err := i.check(target.VM{Name: "second"}, c.second)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), "first and second") {
			t.Errorf("%s: %v does not name both", name, err)
		}
		i.forget("first")
		if err := i.check(target.VM{Name: "second"}, c.second); err != nil {
			t.Errorf("%s: after the first is gone: %v", name, err)
		}
	}
}

// A VM that answers again with another identity gives the former one up, and one that is refused gets none.
func TestIdentityChanges(t *testing.T) {
	t.Parallel()
	i := newIdentityCheck(true)
	hello := func(boot, address string) wire.Hello { return wire.Hello{Boot: boot, Addresses: []string{address}} }
	for n, step := range []struct {
		vm   string
		said wire.Hello
		ok   bool
	}{
		{"a", hello("1", "10.0.0.1"), true},
		{"b", hello("2", "10.0.0.1"), false},
		{"a", hello("3", "10.0.0.2"), true},
		{"b", hello("2", "10.0.0.1"), true},
		{"c", hello("1", "10.0.0.3"), true},
		{"a", hello("2", "10.0.0.2"), false},
		{"d", hello("3", "10.0.0.2"), true}, // a was refused, and is not known any more
	} {
		if err := i.check(target.VM{Name: step.vm}, step.said); (err == nil) != step.ok {
			t.Errorf("step %d: %v", n+1, err)
		}
	}
}

// Each of many VMs costs the same: none is compared with all others.
func TestManyIdentities(t *testing.T) {
	i := newIdentityCheck(true)
	add := func(from, to int) float64 {
		return testing.AllocsPerRun(1, func() {
			for n := from; n < to; n++ {
				id := fmt.Sprint(n)
				if err := i.check(target.VM{Name: id}, wire.Hello{Boot: id, MachineID: id, Addresses: []string{fmt.Sprintf("10.0.%d.%d", n>>8, n&255)}}); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	first := add(0, 100)
	_ = add(100, 10_000)
	if last := add(20_000, 20_100); last > 3*first {
		t.Errorf("100 VMs take %v allocations, and %v after 10,000 others", first, last)
	}
}

func TestSharedIdentities(t *testing.T) {
	t.Parallel()
	got := SharedIdentities(map[string]wire.Hello{
		"a": {Boot: "1", MachineID: "0123456789abcdef0123456789abcdef", Addresses: []string{"10.0.0.1", "fe80::1", "127.0.0.1"}},
		"b": {Boot: "2", MachineID: "01234567-89AB-cdef-0123-456789abcdef", Addresses: []string{"::ffff:10.0.0.1", "10.0.0.2"}},
		"c": {Boot: "2", MachineID: "1123456789abcdef0123456789abcdef", Addresses: []string{"10.0.0.3", "fe80::1", "127.0.0.1", "2001:DB8::7"}},
		"d": {Boot: "4", Addresses: []string{"nonsense", "2001:db8:0::7", "2001:db8::7"}},
		"e": {},
		"f": {},
	})
	want := []SharedIdentity{
		{"agent", "2", []string{"b", "c"}},
		{"machine-id", "0123456789abcdef0123456789abcdef", []string{"a", "b"}},
		{"address", "10.0.0.1", []string{"a", "b"}},
		{"address", "2001:db8::7", []string{"c", "d"}},
	}
	same := func(a, b SharedIdentity) bool {
		return a.Kind == b.Kind && a.Value == b.Value && slices.Equal(a.VMs, b.VMs)
	}
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if got := SharedIdentities(map[string]wire.Hello{"a": {Boot: "1"}, "b": {Boot: "2"}}); len(got) != 0 {
		t.Errorf("strangers share %v", got)
	}
}
