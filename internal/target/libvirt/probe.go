package libvirt

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Accelerators as libvirt calls them: the type of a domain.
const (
	accelAuto = "auto"
	accelKVM  = "kvm"
	accelTCG  = "qemu"
)

// accelerator is what runs the code of a node's VMs, and why.
type accelerator struct {
	kind   string // accelKVM or accelTCG; empty: not known yet
	reason string
}

func (a accelerator) describe() string {
	if a.kind == accelKVM {
		return "KVM (" + a.reason + ")"
	}
	return "none: QEMU interprets every instruction (TCG), which is many times slower than hardware (" + a.reason + ")"
}

// accelerator finds out what runs VMs on a node. A host may offer KVM and still run nothing with it, so a probe boots.
func (t *Target) accelerator(ctx context.Context, n *node) (accelerator, error) {
	if t.settings.accelerator != accelAuto {
		return accelerator{t.settings.accelerator, "set in the target file"}, nil
	}
	n.mu.Lock()
	known := n.probe
	n.mu.Unlock()
	if known.kind != "" {
		return known, nil
	}
	a, err := n.probeKVM(ctx, t.settings.cpu)
	if err != nil {
		return a, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.probe = a
	return a, nil
}

// The probe's firmware finds nothing to boot, waits and starts again, which libvirt reports. A virtual CPU that faults
// starts again too, but at once; one that hangs never does.
const (
	probeWait    = 2 * time.Second
	probeSeconds = 20
	probeLimit   = 2 * probeSeconds * time.Second
	// probeSwift is what firmware takes at most where hardware runs it. One that takes longer is compared with TCG.
	probeSwift  = probeWait + 2*time.Second
	reasonBytes = 300
)

// probeKVM boots a domain under KVM.
func (n *node) probeKVM(ctx context.Context, cpuMode string) (accelerator, error) {
	offer, err := n.query(ctx, "domcapabilities", "--virttype=kvm", "--machine=q35")
	if err != nil && (isLost(err) || ctx.Err() != nil) {
		return accelerator{}, err
	}
	if err != nil || !strings.Contains(string(offer), "<domain>kvm</domain>") {
		return accelerator{accelTCG, "the host does not offer KVM"}, nil
	}
	took, err := n.boot(ctx, accelKVM, cpuMode)
	switch {
	case ctx.Err() != nil:
		return accelerator{}, context.Cause(ctx)
	case err != nil:
		reason := err.Error()
		return accelerator{accelTCG, "the host offers KVM, and a VM does not boot under it: " + reason[:min(len(reason), reasonBytes)]}, nil
	case took < probeSwift:
		return accelerator{accelKVM, "a VM booted under it"}, nil
	}
	interpreted, err := n.boot(ctx, accelTCG, cpuMode)
	if err == nil && interpreted < took {
		return accelerator{accelTCG, fmt.Sprintf("the host offers KVM, and a VM boots in %.1f s under it and in %.1f s without",
			took.Seconds(), interpreted.Seconds())}, nil
	}
	return accelerator{accelKVM, "a VM booted under it"}, context.Cause(ctx)
}

// boot lets a domain without disks boot and returns how long its firmware took until it gave up. It needs nothing on the
// host and leaves nothing there: libvirt removes the domain with the connection that made it, however that ends.
func (n *node) boot(ctx context.Context, kind, cpuMode string) (time.Duration, error) {
	var random [8]byte
	_, _ = rand.Read(random[:])
	d := machine(kind, cpuMode)
	d.Name = "bragg-probe-" + hex.EncodeToString(random[:])
	d.Memory, d.VCPU = amount{"MiB", 64}, 1
	d.OS.BIOS = &struct {
		RebootTimeout int `xml:"rebootTimeout,attr"`
	}{int(probeWait.Milliseconds())}
	text, err := d.text()
	if err != nil {
		return 0, err
	}
	// Both commands run on one connection, with whose end the domain goes.
	script := fmt.Sprintf("create --file=/dev/stdin --autodestroy; event --domain=%s --event=reboot --timeout=%d", d.Name,
		probeSeconds)
	began := time.Now()
	out, err := n.run(ctx, call{args: []string{script}, stdin: text, limit: probeLimit})
	took := time.Since(began)
	switch {
	case err == nil && !strings.Contains(string(out), "event 'reboot'"):
		return took, fmt.Errorf("nothing happened within %d s", probeSeconds)
	case err == nil && took < probeWait:
		return took, errors.New("it faults")
	}
	return took, err
}
