package lab

import (
	"fmt"
	"path/filepath"
	"strings"
)

// TargetFile is a target file of a lab.
type TargetFile struct {
	Provider string `json:"provider"`
	Path     string `json:"path"`
	Text     string `json:"-"`
}

// TargetFiles are the target files of a lab, that of libvirt first. They lie in the lab's folder.
func (l *Lab) TargetFiles() []TargetFile {
	var files []TargetFile
	if l.Libvirt {
		files = append(files, TargetFile{"libvirt", filepath.Join(l.Dir, "target.yml"), l.libvirtTarget()})
	}
	if l.SSH {
		files = append(files, TargetFile{"ssh", filepath.Join(l.Dir, "ssh.yml"), l.sshTarget()})
	}
	return files
}

// libvirtTarget quotes as JSON does, which YAML reads.
func (l *Lab) libvirtTarget() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by bragg lab; it goes with the lab.\nprovider: libvirt\nname: %q\nnodes:\n", "lab "+l.Name)
	for _, h := range l.Hosts {
		fmt.Fprintf(&b, "  - id: %q\n    name: %q\n    address: %q\n    endpoint: %q\n", h.UUID, h.Name, h.Address, h.URI())
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
		nth(l.Subnet, guestAddress), nth(l.Subnet, guestAddressLast), l.Subnet.Bits())
	l.writeEnd(&b)
	return b.String()
}

func (l *Lab) sshTarget() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by bragg lab; it goes with the lab.\nprovider: ssh\nname: %q\nnodes:\n", "lab "+l.Name)
	for _, h := range l.Hosts {
		fmt.Fprintf(&b, "  - id: %q\n    name: %q\n    address: %q\n", h.UUID, h.Name, SSHUser+"@"+h.Address.String())
		fmt.Fprintf(&b, "    uuid: %q\n    serial: %q\n", h.UUID, h.Serial)
		l.writeBMC(&b, h)
	}
	fmt.Fprintf(&b, "pool: %q\noptions:\n  ssh_options: %q\n", sshPool, strings.Join(l.SSHOptions(), " "))
	l.writeEnd(&b)
	return b.String()
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
	fmt.Fprintf(b, "credentials:\n  bmc:\n    user: %q\n    secret: {file: %q}\n", BMCUser, l.BMCPasswordFile())
	fmt.Fprintf(b, "facts:\n  hosts: %q\nallow:\n  node_power: true\n",
		fmt.Sprintf("%d in namespaces of one machine, which share its processors, memory and disk", len(l.Hosts)))
}
