package libvirt

import (
	"testing"
	"time"
)

// TestBoots: an emulated distribution takes minutes of a processor, which VMs share; the small system takes seconds.
func TestBoots(t *testing.T) {
	templates := map[string]string{"small": "./image", "debian": "debian.qcow2"}
	emulated, kvm := boots(templates, true), boots(templates, false)
	if b := emulated["debian"]; b.Alone != 90*time.Second || b.CPU != 2*time.Minute {
		t.Errorf("an emulated distribution boots in %v and %v of a processor", b.Alone, b.CPU)
	}
	if b := kvm["debian"]; b.Alone >= emulated["debian"].Alone || b.CPU != 0 || b.Basis != basisAssumedKVM {
		t.Errorf("a distribution under KVM boots in %v and %v of a processor (%s)", b.Alone, b.CPU, b.Basis)
	}
	for _, b := range []time.Duration{emulated["small"].Alone, kvm["small"].Alone} {
		if b != 5*time.Second {
			t.Errorf("the small system boots in %v", b)
		}
	}
}
