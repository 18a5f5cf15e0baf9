package agent

import (
	"net/netip"
	"slices"
	"testing"
)

func TestSharedIdentities(t *testing.T) {
	t.Parallel()
	got := SharedIdentities(map[string]Hello{
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
	if got := SharedIdentities(map[string]Hello{"a": {Boot: "1"}, "b": {Boot: "2"}}); len(got) != 0 {
		t.Errorf("strangers share %v", got)
	}
}

// What an agent says of its machine can be compared.
func TestOwnIdentity(t *testing.T) {
	t.Parallel()
	_, addresses := ownIdentity()
	for _, text := range addresses {
		if a, err := netip.ParseAddr(text); err != nil || a.IsLoopback() {
			t.Errorf("address %q: %v", text, err)
		}
	}
	if !slices.IsSorted(addresses) {
		t.Errorf("addresses are %v", addresses)
	}
}
