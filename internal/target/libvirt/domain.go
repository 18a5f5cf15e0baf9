package libvirt

import (
	"encoding/xml"
	"fmt"
)

// The part of libvirt's domain format that VMs of ours need: https://libvirt.org/formatdomain.html.
type domain struct {
	XMLName     xml.Name `xml:"domain"`
	Type        string   `xml:"type,attr"` // kvm, or qemu for TCG
	Name        string   `xml:"name"`
	UUID        string   `xml:"uuid,omitempty"`
	Description string   `xml:"description,omitempty"`
	Metadata    *notes   `xml:"metadata,omitempty"`
	Memory      amount   `xml:"memory"`
	VCPU        int      `xml:"vcpu"`
	IOThreads   int      `xml:"iothreads,omitempty"`
	OS          system   `xml:"os"`
	Features    feature  `xml:"features"`
	CPU         *cpu     `xml:"cpu,omitempty"`
	Clock       offset   `xml:"clock"`
	OnPoweroff  string   `xml:"on_poweroff"`
	OnReboot    string   `xml:"on_reboot"`
	OnCrash     string   `xml:"on_crash"`
	Devices     devices  `xml:"devices"`
}

// notes are what libvirt keeps for others.
type notes struct {
	VM metadata
}

type amount struct {
	Unit  string `xml:"unit,attr"`
	Value int64  `xml:",chardata"`
}

type system struct {
	Type struct {
		Arch    string `xml:"arch,attr,omitempty"`
		Machine string `xml:"machine,attr"`
		Name    string `xml:",chardata"`
	} `xml:"type"`
	Kernel  string `xml:"kernel,omitempty"`
	Initrd  string `xml:"initrd,omitempty"`
	Cmdline string `xml:"cmdline,omitempty"`
	BIOS    *struct {
		RebootTimeout int `xml:"rebootTimeout,attr"` // ms
	} `xml:"bios,omitempty"`
}

type feature struct {
	ACPI struct{} `xml:"acpi"`
	APIC struct{} `xml:"apic"`
}

type cpu struct {
	Mode  string `xml:"mode,attr"`
	Match string `xml:"match,attr,omitempty"`
	Check string `xml:"check,attr,omitempty"`
	Model string `xml:"model,omitempty"`
}

type offset struct {
	Offset string `xml:"offset,attr"`
}

type devices struct {
	Controllers []controller `xml:"controller"`
	Disks       []disk       `xml:"disk"`
	Interfaces  []nic        `xml:"interface"`
	Serial      *serial      `xml:"serial,omitempty"`
	Console     *serial      `xml:"console,omitempty"`
	RNG         *rng         `xml:"rng,omitempty"`
	Balloon     *balloon     `xml:"memballoon,omitempty"`
	Panic       *panicDevice `xml:"panic,omitempty"`
}

type controller struct {
	Type   string `xml:"type,attr"`
	Index  int    `xml:"index,attr"`
	Model  string `xml:"model,attr"`
	Driver *struct {
		IOThread int `xml:"iothread,attr,omitempty"`
	} `xml:"driver,omitempty"`
}

type disk struct {
	Type   string `xml:"type,attr"`
	Device string `xml:"device,attr"`
	Driver struct {
		Name    string `xml:"name,attr"`
		Type    string `xml:"type,attr"`
		Cache   string `xml:"cache,attr,omitempty"`
		IO      string `xml:"io,attr,omitempty"`
		Discard string `xml:"discard,attr,omitempty"`
	} `xml:"driver"`
	Source struct {
		File string `xml:"file,attr"`
	} `xml:"source"`
	Target struct {
		Dev string `xml:"dev,attr"`
		Bus string `xml:"bus,attr"`
	} `xml:"target"`
	ReadOnly *struct{} `xml:"readonly,omitempty"`
	Serial   string    `xml:"serial,omitempty"`
	Boot     *order    `xml:"boot,omitempty"`
	Address  *place    `xml:"address,omitempty"`
}

type order struct {
	Order int `xml:"order,attr"`
}

type place struct {
	Type       string `xml:"type,attr"`
	Controller int    `xml:"controller,attr"`
	Bus        int    `xml:"bus,attr"`
	Target     int    `xml:"target,attr"`
	Unit       int    `xml:"unit,attr"`
}

type nic struct {
	Type   string `xml:"type,attr"`
	MAC    hwaddr `xml:"mac"`
	Source struct {
		Network string `xml:"network,attr,omitempty"`
		Bridge  string `xml:"bridge,attr,omitempty"`
	} `xml:"source"`
	Model struct {
		Type string `xml:"type,attr"`
	} `xml:"model"`
}

type hwaddr struct {
	Address string `xml:"address,attr"`
}

type serial struct {
	Type   string `xml:"type,attr"`
	Target *struct {
		Type string `xml:"type,attr"`
		Port int    `xml:"port,attr"`
	} `xml:"target,omitempty"`
}

type rng struct {
	Model   string `xml:"model,attr"`
	Backend struct {
		Model string `xml:"model,attr"`
		Path  string `xml:",chardata"`
	} `xml:"backend"`
}

// panicDevice is how a guest's kernel says that it has ended. libvirt then does what on_crash says.
type panicDevice struct {
	Model string `xml:"model,attr"`
}

type balloon struct {
	Model string `xml:"model,attr"`
}

// machine is what all domains of ours have in common, the probe too.
func machine(accelerator, cpuMode string) domain {
	d := domain{
		Type: accelerator, Clock: offset{"utc"}, OnPoweroff: "destroy", OnReboot: "restart", OnCrash: "destroy",
		CPU: &cpu{Mode: cpuMode},
	}
	if accelerator == accelTCG {
		d.CPU = &cpu{Mode: "custom", Match: "exact", Check: "none", Model: "qemu64"}
	}
	d.OS.Type.Machine, d.OS.Type.Name = "q35", "hvm"
	d.Devices.Controllers = []controller{{Type: "usb", Model: "none"}}
	d.Devices.Balloon = &balloon{Model: "none"}
	return d
}

// text is the domain as XML.
func (d domain) text() ([]byte, error) {
	text, err := xml.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("describe domain %q: %w", d.Name, err)
	}
	return text, nil
}

// diskName returns the name of the i-th disk as Linux gives it: sda, …, sdz, sdaa.
func diskName(i int) string {
	suffix := ""
	for n := i + 1; n > 0; n = (n - 1) / 26 {
		suffix = string(rune('a'+(n-1)%26)) + suffix
	}
	return "sd" + suffix
}

// scsiDisk is a disk on the virtio-scsi controller. The i-th is sda, sdb, …: Linux counts logical units in their order,
// and the serial number says the same, for guests that find them in another.
func scsiDisk(i int, path, format, cache string) disk {
	d := disk{Type: "file", Device: "disk", Serial: serialOf(i)}
	d.Driver.Name, d.Driver.Type, d.Driver.Cache, d.Driver.Discard = "qemu", format, cache, "unmap"
	if cache == "none" || cache == "directsync" {
		d.Driver.IO = "native"
	}
	d.Source.File = path
	d.Target.Dev, d.Target.Bus = diskName(i), "scsi"
	d.Address = &place{Type: "drive", Unit: i}
	return d
}

// serialOf is the serial number of the i-th disk.
func serialOf(i int) string { return "bragg-" + diskName(i) }
