package lab

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/braggdev/bragg/internal/lab/cable"
	"github.com/braggdev/bragg/internal/lab/chassis"
)

// TargetFile is a target file of a lab.
type TargetFile struct {
	Provider string `json:"provider"`
	Connect  string `json:"connect,omitempty"` // of libvirt: "socket" or "ssh"
	Path     string `json:"path"`
	Text     string `json:"-"`
}

// How the libvirt of a host is reached.
const (
	ConnectSocket = "socket" // a file of the machine, which only a lab has
	ConnectSSH    = "ssh"    // as that of any other host
)

// TargetFiles are the target files of a lab, that of libvirt first. They lie in the lab's folder.
func (l *Lab) TargetFiles() []TargetFile {
	var files []TargetFile
	if l.Libvirt {
		files = append(files, TargetFile{"libvirt", ConnectSocket, filepath.Join(l.Dir, "target.yml"), l.libvirtTarget(ConnectSocket)})
	}
	if l.SSH {
		files = append(files, TargetFile{"ssh", "", filepath.Join(l.Dir, "ssh.yml"), l.sshTarget()})
	}
	if l.Libvirt && l.SSH {
		files = append(files, TargetFile{"libvirt", ConnectSSH, filepath.Join(l.Dir, "libvirt-ssh.yml"), l.libvirtTarget(ConnectSSH)})
	}
	return files
}

// libvirtTarget quotes as JSON does, which YAML reads.
func (l *Lab) libvirtTarget(connect string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by bragg-lab; it goes with the lab.\nprovider: libvirt\nname: %q\nnodes:\n", "lab "+l.Name)
	for _, h := range l.Hosts {
		uri := h.URI()
		if connect == ConnectSSH {
			uri = l.SSHURI(h)
		}
		fmt.Fprintf(&b, "  - id: %q\n    name: %q\n    address: %q\n    endpoint: %q\n", h.UUID, h.Name, h.Address, uri)
		fmt.Fprintf(&b, "    uuid: %q\n    serial: %q\n", h.UUID, h.Serial)
		l.writeBMC(&b, h)
	}
	if len(l.Templates) > 0 {
		b.WriteString("templates:\n")
		for _, t := range l.Templates {
			fmt.Fprintf(&b, "  %q: %q\n", t.Name, t.Image)
		}
	}
	// A bridge's leases are nothing that libvirt knows of, so addresses are given out.
	fmt.Fprintf(&b, "pool: %q\nnetwork: %q\naddresses: {first: %q, last: %q, prefix: %d}\noptions:\n  storage: shared\n", PoolName, PoolName,
		cable.Nth(l.Subnet, guestAddress), cable.Nth(l.Subnet, guestAddressLast), l.Subnet.Bits())
	l.writeEnd(&b)
	return b.String()
}

func (l *Lab) sshTarget() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by bragg-lab; it goes with the lab.\nprovider: ssh\nname: %q\nnodes:\n", "lab "+l.Name)
	for _, h := range l.Hosts {
		fmt.Fprintf(&b, "  - id: %q\n    name: %q\n    address: %q\n", h.UUID, h.Name, SSHUser+"@"+h.Address.String())
		fmt.Fprintf(&b, "    uuid: %q\n    serial: %q\n", h.UUID, h.Serial)
		l.writeBMC(&b, h)
	}
	fmt.Fprintf(&b, "pool: %q\noptions:\n  ssh_options: %q\n", sshPool, strings.Join(l.SSHOptions(), " "))
	l.writeEnd(&b)
	return b.String()
}

// SSHURI is the libvirt of a host as one reaches that of a host elsewhere.
func (l *Lab) SSHURI(h Host) string {
	return fmt.Sprintf("qemu+ssh://%s@%s/system?keyfile=%s&known_hosts=%s", SSHUser, h.Address, l.SSHKeyFile(), l.KnownHostsFile())
}

// SSHOptions are what ssh needs behind -o to get in, with the hosts' keys checked.
func (l *Lab) SSHOptions() []string {
	return []string{
		"IdentityFile=" + l.SSHKeyFile(), "IdentitiesOnly=yes", "UserKnownHostsFile=" + l.KnownHostsFile(), "GlobalKnownHostsFile=none",
		"StrictHostKeyChecking=yes", "UpdateHostKeys=no",
	}
}

func (l *Lab) writeBMC(b *strings.Builder, h Host) {
	if l.IPMI {
		fmt.Fprintf(b, "    bmc: {protocol: ipmi, address: %q, credential: bmc}\n", h.BMC)
		return
	}
	fmt.Fprintf(b, "    bmc: {protocol: redfish, address: %q, credential: bmc, fingerprint: %q}\n", h.BMC, "SHA256:"+h.Fingerprint)
}

func (l *Lab) writeEnd(b *strings.Builder) {
	fmt.Fprintf(b, "credentials:\n  bmc:\n    user: %q\n    secret: {file: %q}\n", chassis.User, l.BMCPasswordFile())
	fmt.Fprintf(b, "facts:\n  hosts: %q\nallow:\n  node_power: true\n",
		fmt.Sprintf("%d in namespaces of one machine, which share its processors, memory and disk", len(l.Hosts)))
}
