// Package lab builds hypervisor hosts on one Linux machine, to try Bragg on real VMs without hardware and to test it: two
// or more hosts with a libvirt or an ssh server each, a BMC per host, storage that all of them see, and a network with
// DHCP. It needs root, and no network.
//
//	Up ──▶ keeper: first process of the lab          ┌──▶ host-1: libvirtd, sshd, its guests
//	       switch, DHCP, BMCs (Redfish, IPMI), hosts ┼──▶ host-2
//	       ▲                                         └──▶ …
//	       └── Lab.Reset, Link, …: power, links ── bragg-lab, tests
//
// A lab consists of processes in namespaces only. The keeper is the first process of a PID namespace, and its network
// namespace is the switch; each host is the first process of a PID namespace below, with a network and mounts of its
// own. What such a process has started ends with it, by the kernel's hand, and so do its links and mounts. So the power
// of a host is cut by killing one process, and a lab is removed by killing one process and deleting one folder: nothing
// is looked for by its name. Beyond its folder a lab has one network interface on the machine, which ends with the
// switch.
//
// Hosts share the machine's kernel, processors, memory and disk. It is a lab to find out whether things work, not how fast.
package lab

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab/cable"
	"github.com/braggdev/bragg/internal/lab/chassis"
)

// Options are what a lab is made of. The zero value is a lab called "default" of two libvirt hosts.
type Options struct {
	Name      string // one word; "default"
	Labs      string // folder of all labs; each has a folder there
	Hosts     int    // 1 to 8; 2
	SSH       bool   // a server of ssh on each host
	NoLibvirt bool   // no libvirt: hosts for the provider ssh alone
	IPMI      bool   // BMCs with IPMI, which target files then use
	// Templates are images of guests to be copied where all hosts see them: name → a disk image, which becomes a volume
	// of the pool, or the folder of a kernel image.
	Templates map[string]string
	// Attached makes a lab that ends with the process that made it, however that ends. Else it stays until Down.
	Attached bool
	// Program is the path of a program that hands what follows Verb to Main. It is started again as keeper and hosts.
	Program string
	Say     func(text string) // what goes on, for people; may be nil
}

// Lab is a lab as its folder describes it.
type Lab struct {
	Format int    `json:"format"`
	ID     string `json:"id"` // 8 hexadecimal digits, drawn
	Name   string `json:"name"`
	Folder
	Created   time.Time    `json:"created"`
	Machine   machine      `json:"machine"`
	Maker     process      `json:"maker"`  // who called Up
	Keeper    process      `json:"keeper"` // zero before it was started
	Attached  bool         `json:"attached"`
	Subnet    netip.Prefix `json:"subnet"`
	Interface string       `json:"interface"` // of the machine in the lab's network
	Libvirt   bool         `json:"libvirt"`
	SSH       bool         `json:"ssh"`
	IPMI      bool         `json:"ipmi"`
	Hosts     []Host       `json:"hosts"`
	Templates []Template   `json:"templates,omitempty"`
}

// Folder is the location of a lab and of those of its files that others use.
type Folder struct {
	Dir string `json:"dir"`
}

// Template is an image for guests.
type Template struct {
	Name  string `json:"name"`
	Image string `json:"image"` // a volume of the pool, or the path of a folder with a kernel image
}

// Host is one host of a lab.
type Host struct {
	Name        string     `json:"name"`
	UUID        string     `json:"uuid"` // of libvirt, of DMI and of the BMC
	Serial      string     `json:"serial"`
	Dir         string     `json:"dir"`
	Address     netip.Addr `json:"address"`
	BMC         netip.Addr `json:"bmc"`         // Redfish on port 443, IPMI on port 623
	Fingerprint string     `json:"fingerprint"` // SHA-256 of the BMC's certificate, hexadecimal
}

// Verb is the hidden verb with which a program is started again as a keeper or a host; Main takes what follows it.
const Verb = "__lab"

// What the program does then.
const (
	roleKeeper  = "keeper"
	roleHost    = "host"
	roleChassis = "chassis"
)

// Names that are the same on the hosts of all labs.
const (
	PoolName = "lab" // libvirt's pool, and the network with its bridge
	SSHUser  = "root"

	sshPool = "/var/tmp/bragg" // for disks of VMs, a folder of each host
)

const (
	stateFormat    = 1
	hostsDefault   = 2
	hostsMax       = 8
	nameDefault    = "default"
	stateFile      = "lab.json"
	socketBytesMax = 107 // of a path, unix(7)
)

// URI returns the URI of a host's libvirt for virsh.
func (h Host) URI() string {
	return "qemu+unix:///system?socket=" + h.LibvirtSocket()
}

// LibvirtSocket is the path of libvirt's socket on the machine.
func (h Host) LibvirtSocket() string { return filepath.Join(h.Dir, "run", "libvirt-sock") }

// TemplateDir is the folder of templates, at the same path on the machine and all hosts.
func (l Folder) TemplateDir() string { return filepath.Join(l.Dir, "shared", "templates") }

// PoolDir is the pool shared by all hosts, at the same path everywhere.
func (l Folder) PoolDir() string { return filepath.Join(l.Dir, "shared", "pool") }

// LeaseFile has the DHCP leases of guests, in the format of dnsmasq.
func (l Folder) LeaseFile() string { return filepath.Join(l.Dir, "switch", "leases") }

// BMCPasswordFile holds the password of BMCUser.
func (l Folder) BMCPasswordFile() string { return filepath.Join(l.Dir, "bmc-password") }

// SSHKeyFile is the private key that all hosts accept.
func (l Folder) SSHKeyFile() string { return filepath.Join(l.Dir, "ssh", "client_key") }

// KnownHostsFile holds the keys of all hosts.
func (l Folder) KnownHostsFile() string { return filepath.Join(l.Dir, "ssh", "known_hosts") }

// Controller is the machine's address in the lab's network.
func (l *Lab) Controller() netip.Addr { return cable.Nth(l.Subnet, controllerAddress) }

func (l Folder) controlSocket() string { return filepath.Join(l.Dir, "control") }

func (l Folder) log() string { return filepath.Join(l.Dir, "keeper.log") }

// Host returns a host by its name.
func (l *Lab) Host(name string) (Host, error) {
	var names []string
	for _, h := range l.Hosts {
		if h.Name == name {
			return h, nil
		}
		names = append(names, h.Name)
	}
	hint := "hosts: " + strings.Join(names, ", ")
	if near := diag.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return Host{}, &diag.Error{
		Code: "lab-no-host", Exit: diag.ExitUsage, Message: fmt.Sprintf("lab %q has no host %q", l.Name, name), Hint: hint,
	}
}

// plainName is what names of labs and templates are: they become names of folders, and arguments.
var plainName = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,31}$`)

// plainPath restricts the path of a lab: configuration files of libvirt, dnsmasq and sshd contain it, each with its own
// quoting.
var plainPath = regexp.MustCompile(`^/[A-Za-z0-9_./+@-]*$`)

// Validate completes what is left open and reports everything that is wrong.
func (o *Options) Validate() error {
	if o.Name == "" {
		o.Name = nameDefault
	}
	if o.Hosts == 0 {
		o.Hosts = hostsDefault
	}
	var wrong []string
	if err := checkName(o.Name); err != nil {
		wrong = append(wrong, err.Error())
	}
	if o.Hosts < 1 || o.Hosts > hostsMax {
		wrong = append(wrong, fmt.Sprintf("%d hosts: want 1 to %d", o.Hosts, hostsMax))
	}
	if o.NoLibvirt && !o.SSH {
		wrong = append(wrong, "hosts need libvirt or ssh")
	}
	for name := range o.Templates {
		if !plainName.MatchString(name) {
			wrong = append(wrong, fmt.Sprintf("template %q: %s", name, plainNameRule))
		}
	}
	wrong = append(wrong, checkLabs(o)...)
	if len(wrong) > 0 {
		return &diag.Error{Code: "lab-options", Exit: diag.ExitUsage, Message: "make a lab: " + strings.Join(wrong, "; ")}
	}
	return nil
}

const plainNameRule = `want up to 32 of a-z, 0-9, "_", "." and "-", a letter or digit first`

func checkName(name string) error {
	if !plainName.MatchString(name) {
		return &diag.Error{Code: "lab-name", Exit: diag.ExitUsage, Message: fmt.Sprintf("lab %q", name), Hint: plainNameRule}
	}
	return nil
}

func checkLabs(o *Options) (wrong []string) {
	switch {
	case !plainPath.MatchString(o.Labs) || filepath.Clean(o.Labs) != o.Labs:
		return []string{fmt.Sprintf("folder %q: want an absolute path of letters, digits and _ . / + @ -", o.Labs)}
	case len(filepath.Join(o.Labs, o.Name, "hosts", "host-8", "run", "libvirt-admin-sock")) > socketBytesMax:
		return []string{fmt.Sprintf("folder %q: the path is too long for sockets", o.Labs)}
	}
	return nil
}

// machine is the host as its BMC describes it.
func (h Host) machine() chassis.Machine {
	return chassis.Machine{Name: h.Name, UUID: h.UUID, Serial: h.Serial, BMC: h.BMC}
}
