package target

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// VMID derives the identity of a VM, a UUID, from the mark of its owner and its name. Different owners or names never share one, and a
// second creation of the same VM is detected.
func VMID(mark, name string) string {
	sum := sha256.Sum256([]byte("vm " + mark + "\x00" + name))
	b := sum[:16]
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80 // version 8: custom
	h := hex.EncodeToString(b)
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// SafeName is the begin of a name, in letters, digits, dashes and underscores, for names on a platform that people read.
func SafeName(name string, runesMax int) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return '_'
	}, name)
	return safe[:min(len(safe), runesMax)]
}

// Copy returns a VM whose lists callers may change.
func (vm VM) Copy() VM {
	vm.Addresses = slices.Clone(vm.Addresses)
	vm.Disks = append([]Disk{}, vm.Disks...)
	return vm
}
