package vsphere

import (
	"archive/tar"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/image"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/login"
	"github.com/braggdev/bragg/internal/target/vsphere/record"
	"github.com/braggdev/bragg/internal/testreq"
	"github.com/braggdev/bragg/internal/trust"
)

// bootPatience is for emulated processors: the first boot costs about two minutes of processor time.
const bootPatience = 20 * time.Minute

// A guest of Bragg's OVA, on the hardware that its descriptor names, gets its identity from the settings that this provider gives
// to a VM. Its hypervisor is QEMU, so the program that reads settings of a VM is a script here.
func TestGuestOfOVA(t *testing.T) {
	path := testreq.OVA(t)
	authority, err := trust.New("run", 4*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	const mac = "00:50:56:12:34:56"
	vm := target.VM{ID: "5f2b8c1e-7d0a-4c3b-9e6f-1a2b3c4d5e6f", Name: "OLTP-0001"}
	g := &guests{authority: authority, keys: login.NewKeyring(), planted: map[string]bool{}}
	settings, err := g.settingsOf(record.Record{VM: vm, VCPUs: 1, RAMBytes: 1 << 30}, mac)
	if err != nil {
		t.Fatal(err)
	}
	disk := testreq.Retouched(t, diskOf(t, path), map[string]string{"/usr/bin/vmware-rpctool": toolOf(settings)})
	port := boot(t, disk, mac)
	hello := greeted(t, authority, vm.Name, port)
	if hello.VM != vm.Name || hello.MachineID != image.MachineID(vm.ID) {
		t.Errorf("the agent says %+v, want %s with machine-id %s", hello, vm.Name, image.MachineID(vm.ID))
	}
}

// diskOf unpacks the disk of an OVA.
func diskOf(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("find the disk in %s: %v", path, err)
		}
		if !strings.HasSuffix(h.Name, ".vmdk") {
			continue
		}
		at := filepath.Join(t.TempDir(), "disk.vmdk")
		to, err := os.Create(at)
		if err == nil {
			_, err = io.Copy(to, r)
			err = errors.Join(err, to.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
}

// toolOf is a program that answers as VMware's does for a VM with these settings.
func toolOf(settings map[string]string) string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\ncase $1 in\n")
	for key, value := range settings {
		fmt.Fprintf(&b, "'info-get %s') echo '%s';;\n", key, value)
	}
	b.WriteString("info-set*) ;;\n*) echo 'No value found' >&2; exit 1;;\nesac\n")
	return b.String()
}

// boot starts a VM with the hardware that the OVA describes, and returns the port of this machine that leads to its agent.
func boot(t *testing.T, disk, mac string) (port int) {
	t.Helper()
	port = testreq.FreePort(t)
	console := filepath.Join(t.TempDir(), "console")
	c := exec.Command(testreq.Program(t, "qemu-system-x86_64"),
		"-accel", "tcg", "-cpu", "qemu64,-hypervisor", "-smbios", "type=1,manufacturer=VMware,, Inc.,product=VMware Virtual Platform,serial=VMware-1",
		"-smbios", "type=0,vendor=VMware,, Inc.", "-m", "1024", "-nodefaults", "-display", "none", "-no-reboot", "-serial", "file:"+console,
		"-device", "pvscsi,id=scsi", "-drive", "if=none,id=d,format=qcow2,file="+disk, "-device", "scsi-hd,drive=d,bus=scsi.0,scsi-id=0",
		"-netdev", fmt.Sprintf("user,id=n,hostfwd=tcp:127.0.0.1:%d-:7401", port), "-device", "vmxnet3,netdev=n,mac="+mac)
	var said strings.Builder
	c.Stderr = &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(console)
			t.Logf("QEMU said %q; console:\n%s", said.String(), text[max(0, len(text)-20_000):])
		}
	})
	return port
}

// greeted waits for the agent.
func greeted(t *testing.T, a *trust.Authority, vm string, port int) wire.Hello {
	t.Helper()
	dialer := &tls.Dialer{Config: a.Controller(vm)}
	for until := time.Now().Add(bootPatience); ; time.Sleep(time.Second) {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
		cancel()
		if err == nil {
			c := client.New(conn, client.Options{})
			hello, err := c.Hello(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
			return hello
		}
		if time.Now().After(until) {
			t.Fatalf("reach the agent: %v", err)
		}
	}
}
