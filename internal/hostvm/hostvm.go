// Package hostvm emulates VMs on an existing Linux host: a VM is an agent process whose data disks are files of the host,
// as on the local target, but it outlives the connection that created it.
//
//	controller: Client ──▶ streams over one connection (sshlink/rpc) ──▶ host: Serve ──▶ target/local, detached ──▶ agents
//
// A Request gets a Reply. The operations are only those of a target: no shell, no path of the caller except the directory
// of the VMs. After OpDial, the stream is the connection to a VM's agent, with TLS inside. Serve keeps no state: the next
// connection finds VMs by their ownership tags.
package hostvm

import (
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/trust"
)

// Verb is the hidden command of the agent's program that serves on a host.
const Verb = "__host"

// Operation is the operation of a Request.
type Operation string

// Operations. All except OpInfo, OpSample and those of leases need a Tag.
const (
	OpInfo     Operation = "info"
	OpCreate   Operation = "create"
	OpDelete   Operation = "delete"
	OpOwned    Operation = "owned"
	OpPowerOn  Operation = "power-on"
	OpPowerOff Operation = "power-off"
	OpClone    Operation = "clone"
	OpSnapshot Operation = "snapshot"
	// OpCheck reports whether all existing VMs carry the tag, so that no host acts on a list with a foreign one.
	OpCheck  Operation = "check"
	OpSample Operation = "sample"
	OpDial   Operation = "dial"
	// OpStrangers lists what else a power cut of the host would hit: VMs of hypervisors, and VMs of other runs.
	OpStrangers Operation = "strangers"
	// OpOthers lists the VMs without the tag in the folder of VMs and on the host.
	OpOthers Operation = "others"
	// OpExport sends the data of a disk after the reply; OpImport receives it and replies a second time.
	OpExport Operation = "export"
	OpImport Operation = "import"
	// OpLease acquires or renews the lease of the host for a controller; OpUnlease releases it.
	OpLease   Operation = "lease"
	OpUnlease Operation = "unlease"
	// OpMachine returns the identity of the host for its lease: the relevant part of Info, and its libvirt.
	OpMachine Operation = "machine"
)

// Request is one operation. Every request has a Place, because the host keeps none.
type Request struct {
	Operation Operation       `json:"operation"`
	Place     Place           `json:"place"`
	Tag       target.Tag      `json:"tag,omitzero"`
	VMs       []target.VM     `json:"vms,omitempty"`   // of delete, power-on, power-off, snapshot, dial; clone: the source
	Specs     []target.VMSpec `json:"specs,omitempty"` // of create and clone
	Linked    bool            `json:"linked,omitempty"`
	Name      string          `json:"name,omitempty"` // of a snapshot
	Disk      int             `json:"disk,omitempty"` // of export and import: its index
	Identity  *trust.Files    `json:"identity,omitempty"`
	Lease     *lease.Order    `json:"lease,omitempty"` // of lease, and of unlease, which uses only the id
}

// Place is the location of VMs on the host, and the host's name and address.
type Place struct {
	// Folder is an existing folder of the host, absolute; VMs are in a folder of Bragg below it. "" is /var/tmp.
	Folder  string `json:"folder,omitempty"`
	NodeID  string `json:"node_id"`
	Address string `json:"address"` // of the host, which its VMs share
	// Leases is the scope of leases that exclude each other; see target.OpenOptions.
	Leases string `json:"leases,omitempty"`
}

// Reply answers a Request. Exactly one field has the result, or Error is set.
type Reply struct {
	Error   *diag.Wire          `json:"error,omitempty"`
	VMs     []target.VM         `json:"vms,omitempty"`
	Info    *Info               `json:"info,omitempty"`
	Samples []target.NodeSample `json:"samples,omitempty"`
	// Strangers is the result of OpStrangers, for people to read.
	Strangers []string `json:"strangers,omitempty"`
	// Others is the result of OpOthers.
	Others []target.Other `json:"others,omitempty"`
	// Lease is the result of OpLease.
	Lease *lease.Answer `json:"lease,omitempty"`
}

// Info describes a host.
type Info struct {
	Version  string `json:"version"` // of the program on the host
	Hostname string `json:"hostname"`
	Kernel   string `json:"kernel"`
	Boot     string `json:"boot"` // boot ID of the system: two names of one machine have the same
	// Network is the network namespace of the program on the host: hosts of a lab share only the machine.
	Network string `json:"network,omitempty"`
	UUID    string `json:"uuid,omitempty"`   // of the hardware, from its firmware; only root can read it
	Serial  string `json:"serial,omitempty"` // likewise
	// Libvirt is the UUID by which libvirt knows the host, so that the machine is identified as the same one through every
	// provider. Only OpMachine reads it; "" if the user cannot use a libvirt there.
	Libvirt    string        `json:"libvirt,omitempty"`
	User       int           `json:"user"`
	CPUs       int           `json:"cpus"`
	RAMBytes   int64         `json:"ram_bytes"`
	FreeBytes  int64         `json:"free_bytes"` // of the file system of the folder
	TotalBytes int64         `json:"total_bytes"`
	Device     uint64        `json:"device"` // number of that file system, until the system restarts
	Folder     string        `json:"folder"` // of VMs
	Facts      []target.Fact `json:"facts"`
}
