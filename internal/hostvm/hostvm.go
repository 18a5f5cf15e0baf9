// Package hostvm emulates VMs on an existing Linux host: a VM is an agent process with data disks that are files of the
// host, as on the local target, but it outlives the connection that created it.
//
//	controller: Client ──▶ streams over one connection (sshlink/rpc) ──▶ host: Serve ──▶ target/local, detached ──▶ agents
//
// A Request gets a Reply. The operations are those of a target and nothing else: no shell, no path of the caller's except
// the directory of the VMs. After OpDial the stream is the connection to a VM's agent, with TLS inside. Serve keeps no state:
// the next connection finds VMs by their ownership tags.
package hostvm

import (
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/trust"
)

// Verb is the hidden verb of the agent's program that serves on a host.
const Verb = "__host"

// Operation is what a Request asks for.
type Operation string

// Operations. All but OpInfo, OpSample and those of leases need a Tag.
const (
	OpInfo     Operation = "info"
	OpCreate   Operation = "create"
	OpDelete   Operation = "delete"
	OpOwned    Operation = "owned"
	OpPowerOn  Operation = "power-on"
	OpPowerOff Operation = "power-off"
	OpClone    Operation = "clone"
	OpSnapshot Operation = "snapshot"
	// OpCheck reports whether all VMs that exist carry the tag, so that nothing is done on any host for a list with a foreign one.
	OpCheck  Operation = "check"
	OpSample Operation = "sample"
	OpDial   Operation = "dial"
	// OpStrangers lists what runs on the host and would be cut with it: VMs of hypervisors, and VMs of other runs.
	OpStrangers Operation = "strangers"
	// OpOthers lists the VMs in the folder of VMs and on the host that do not carry the tag.
	OpOthers Operation = "others"
	// OpExport sends the data of a disk after the reply; OpImport takes it and replies a second time.
	OpExport Operation = "export"
	OpImport Operation = "import"
	// OpLease takes the lease of the host for a controller, or renews it; OpUnlease gives it back.
	OpLease   Operation = "lease"
	OpUnlease Operation = "unlease"
	// OpMachine tells what the host is for its lease: the part of Info that does so, and its libvirt.
	OpMachine Operation = "machine"
)

// Request is one operation. Place is part of every one, because the host keeps none.
type Request struct {
	Operation Operation       `json:"operation"`
	Place     Place           `json:"place"`
	Tag       target.Tag      `json:"tag,omitzero"`
	VMs       []target.VM     `json:"vms,omitempty"`   // of delete, power-on, power-off, snapshot, dial; clone: the source
	Specs     []target.VMSpec `json:"specs,omitempty"` // of create and clone
	Linked    bool            `json:"linked,omitempty"`
	Name      string          `json:"name,omitempty"` // of a snapshot
	Disk      int             `json:"disk,omitempty"` // of export and import: its number
	Identity  *trust.Files    `json:"identity,omitempty"`
	Lease     *lease.Order    `json:"lease,omitempty"` // of lease, and of unlease, which reads the id alone
}

// Place is where VMs lie on the host, and what the host is called.
type Place struct {
	// Folder is a folder of the host, absolute, that exists; VMs lie in one of Bragg in it. "" is /var/tmp.
	Folder  string `json:"folder,omitempty"`
	NodeID  string `json:"node_id"`
	Address string `json:"address"` // of the host, which its VMs share
	// Leases are those that exclude each other; see target.OpenOptions.
	Leases string `json:"leases,omitempty"`
}

// Reply answers a Request. Exactly one field says what came of it, Error if nothing did.
type Reply struct {
	Error   *diag.Wire          `json:"error,omitempty"`
	VMs     []target.VM         `json:"vms,omitempty"`
	Info    *Info               `json:"info,omitempty"`
	Samples []target.NodeSample `json:"samples,omitempty"`
	// Strangers is what OpStrangers found, for people to read.
	Strangers []string `json:"strangers,omitempty"`
	// Others is what OpOthers found.
	Others []target.Other `json:"others,omitempty"`
	// Lease is what came of OpLease.
	Lease *lease.Answer `json:"lease,omitempty"`
}

// Info describes a host.
type Info struct {
	Version  string `json:"version"` // of the program there
	Hostname string `json:"hostname"`
	Kernel   string `json:"kernel"`
	Boot     string `json:"boot"` // id of the system's start: two names of one machine have the same
	// Network is the network namespace of the program there: hosts of a lab share a machine and nothing else.
	Network string `json:"network,omitempty"`
	UUID    string `json:"uuid,omitempty"`   // of the hardware, as its firmware says; only root may read it
	Serial  string `json:"serial,omitempty"` // likewise
	// Libvirt is the UUID by which the libvirt there knows its host, so that the machine is one through whichever provider it is
	// reached. Only OpMachine asks for it; "" where there is none that the user may use.
	Libvirt    string        `json:"libvirt,omitempty"`
	User       int           `json:"user"`
	CPUs       int           `json:"cpus"`
	RAMBytes   int64         `json:"ram_bytes"`
	FreeBytes  int64         `json:"free_bytes"` // of the file system of the folder
	TotalBytes int64         `json:"total_bytes"`
	Device     uint64        `json:"device"` // number of that file system, while the system runs
	Folder     string        `json:"folder"` // of VMs
	Facts      []target.Fact `json:"facts"`
}
