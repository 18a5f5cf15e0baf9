package domain

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// Accelerator is what executes the code of a host's VMs, and why.
type Accelerator struct {
	Kind   string // KVM or TCG; empty: not known yet
	Reason string
}

func (a Accelerator) String() string {
	if a.Kind == KVM {
		return "KVM (" + a.Reason + ")"
	}
	return "none: QEMU interprets every instruction (TCG), which is many times slower than hardware (" + a.Reason + ")"
}

// Accelerator determines the accelerator of the host, once. Some hosts offer KVM although VMs do not run under it, so
// it boots a probe.
func (c *Client) Accelerator(ctx context.Context, cpuMode string) (Accelerator, error) {
	c.mu.Lock()
	known := c.probed
	c.mu.Unlock()
	if known.Kind != "" {
		return known, nil
	}
	a, err := c.Probe(ctx, cpuMode)
	if err != nil {
		return a, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probed = a
	return a, nil
}

// The probe's firmware finds nothing to boot, waits and resets, which libvirt reports. A virtual CPU that faults
// resets too, but at once; one that hangs never does.
const (
	probeWait    = 2 * time.Second
	probeSeconds = 20
	probeLimit   = 2 * probeSeconds * time.Second
	// probeSwift is the longest that firmware takes under hardware virtualisation. A slower one is compared with TCG.
	probeSwift  = probeWait + 2*time.Second
	reasonBytes = 300
)

// Probe boots a domain under KVM.
func (c *Client) Probe(ctx context.Context, cpuMode string) (Accelerator, error) {
	offer, err := c.Host.Query(ctx, "domcapabilities", "--virttype=kvm", "--machine=q35")
	if err != nil && (virsh.IsLost(err) || ctx.Err() != nil) {
		return Accelerator{}, err
	}
	if err != nil || !strings.Contains(string(offer), "<domain>kvm</domain>") {
		return Accelerator{TCG, "the host does not offer KVM"}, nil
	}
	took, err := c.boot(ctx, KVM, cpuMode)
	switch {
	case ctx.Err() != nil:
		return Accelerator{}, context.Cause(ctx)
	case err != nil:
		reason := err.Error()
		return Accelerator{TCG, "the host offers KVM, and a VM does not boot under it: " + reason[:min(len(reason), reasonBytes)]}, nil
	case took < probeSwift:
		return Accelerator{KVM, "a VM booted under it"}, nil
	}
	interpreted, err := c.boot(ctx, TCG, cpuMode)
	if err == nil && interpreted < took {
		return Accelerator{TCG, fmt.Sprintf("the host offers KVM, and a VM boots in %.1f s under it and in %.1f s without",
			took.Seconds(), interpreted.Seconds())}, nil
	}
	return Accelerator{KVM, "a VM booted under it"}, context.Cause(ctx)
}

// boot boots a domain without disks and returns how long its firmware took until it gave up. It needs no files on the host and
// leaves nothing there: libvirt removes the domain with the connection that made it, however that ends.
func (c *Client) boot(ctx context.Context, kind, cpuMode string) (time.Duration, error) {
	var random [8]byte
	_, _ = rand.Read(random[:])
	d := Domain{
		Type: kind, CPUMode: cpuMode, Name: "bragg-probe-" + hex.EncodeToString(random[:]), RAMBytes: 64 << 20, VCPUs: 1,
		ResetMillis: probeWait.Milliseconds(),
	}
	// Both commands run on one connection, with whose end the domain goes.
	script := fmt.Sprintf("create --file=/dev/stdin --autodestroy; event --domain=%s --event=reboot --timeout=%d", d.Name,
		probeSeconds)
	began := time.Now()
	out, err := c.Host.Run(ctx, virsh.Call{Args: []string{script}, Stdin: d.Text(), Limit: probeLimit})
	took := time.Since(began)
	switch {
	case err == nil && !strings.Contains(string(out), "event 'reboot'"):
		return took, fmt.Errorf("no reset within %d s", probeSeconds)
	case err == nil && took < probeWait:
		return took, errors.New("its CPU faults")
	}
	return took, err
}
