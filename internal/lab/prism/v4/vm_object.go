package v4

import (
	"net/http"
	"slices"

	"github.com/braggdev/bragg/internal/lab/prism/rest"
	"github.com/braggdev/bragg/internal/lab/prism/state"
)

const vmPackage = "vmm.v4.ahv.config."

func vmObject(d *state.Data, vm *state.VM) rest.Object {
	o := object(vmPackage+"Vm", rest.Object{
		"extId": vm.ID, "name": vm.Name, "description": vm.Description, "createTime": stamp(vm.Created), "updateTime": stamp(vm.Updated),
		"numSockets": vm.Sockets, "numCoresPerSocket": vm.CoresPerSocket, "numThreadsPerCore": vm.ThreadsPerCore, "memorySizeBytes": vm.MemoryBytes,
		"powerState": string(vm.Power), "cluster": ref(vmPackage+"ClusterReference", d.Cluster.ID), "biosUuid": vm.BIOS, "generationUuid": vm.Generation,
		"machineType": "PC", "hardwareClockTimezone": "UTC", "isAgentVm": false, "isCpuPassthroughEnabled": false, "isMemoryOvercommitEnabled": false,
		"isLiveMigrateCapable": true, "protectionType": "UNPROTECTED",
	})
	if vm.Power != state.Off {
		o["host"] = ref(vmPackage+"HostReference", vm.HostID)
	}
	if len(vm.Categories) > 0 {
		o["categories"] = refs(vmPackage+"CategoryReference", vm.Categories)
	}
	var disks, drives, nics []rest.Object
	for _, one := range vm.Disks {
		if one.CDROM {
			drives = append(drives, diskObject(one))
		} else {
			disks = append(disks, diskObject(one))
		}
	}
	for _, n := range vm.NICs {
		nics = append(nics, nicObject(n, vm.Power == state.On))
	}
	for key, list := range map[string][]rest.Object{"disks": disks, "cdRoms": drives, "nics": nics} {
		if len(list) > 0 {
			o[key] = list
		}
	}
	return o
}

func diskObject(one state.Disk) rest.Object {
	kind, address := "Disk", "DiskAddress"
	if one.CDROM {
		kind, address = "CdRom", "CdRomAddress"
	}
	o := object(vmPackage+kind, rest.Object{
		"extId": one.ID, "diskAddress": object(vmPackage+address, rest.Object{"busType": one.Bus, "index": one.Index}),
	})
	if one.CDROM && one.ImageID == "" {
		return o
	}
	backing := object(vmPackage+"VmDisk", rest.Object{
		"diskExtId": one.ID, "diskSizeBytes": one.SizeBytes, "storageContainer": ref(vmPackage+"VmDiskContainerReference", one.ContainerID),
	})
	if one.ImageID != "" {
		backing["dataSource"] = object(vmPackage+"DataSource", rest.Object{
			"reference": object(vmPackage+"ImageReference", rest.Object{"imageExtId": one.ImageID}),
		})
	}
	o["backingInfo"] = backing
	return o
}

// nicObject has both forms of v4.3: that of v4.0, and the newer one with a choice of kinds. Addresses are learned while the VM is on.
func nicObject(n state.NIC, on bool) rest.Object {
	backing := func(kind string) rest.Object {
		return object(vmPackage+kind, rest.Object{"model": "VIRTIO", "macAddress": n.MAC, "isConnected": n.Connected, "numQueues": 1})
	}
	network := func(kind string) rest.Object {
		o := object(vmPackage+kind, rest.Object{
			"nicType": "NORMAL_NIC", "vlanMode": "ACCESS", "subnet": ref(vmPackage+"SubnetReference", n.SubnetID),
			"ipv4Config": object(vmPackage+"Ipv4Config", rest.Object{"shouldAssignIp": true, "ipAddress": ipv4(n.Address)}),
		})
		if on {
			o["ipv4Info"] = object(vmPackage+"Ipv4Info", rest.Object{"learnedIpAddresses": []rest.Object{ipv4(n.Address)}})
		}
		return o
	}
	return object(vmPackage+"Nic", rest.Object{
		"extId": n.ID, "backingInfo": backing("EmulatedNic"), "nicBackingInfo": backing("VirtualEthernetNic"),
		"networkInfo": network("NicNetworkInfo"), "nicNetworkInfo": network("VirtualEthernetNicNetworkInfo"),
	})
}

// deviceRoutes are disks and interfaces of a VM as entities of their own.
func (a *API) deviceRoutes() {
	a.route("GET vmm/ahv/config/vms/{id}/disks", func(w http.ResponseWriter, r *http.Request) error {
		vm, err := a.copyOf(r.PathValue("id"))
		if err != nil {
			return err
		}
		var all []rest.Object
		for _, one := range vm.Disks {
			if !one.CDROM {
				all = append(all, diskObject(one))
			}
		}
		return list(w, r, vmPackage+"ListDisksApiResponse", all)
	})
	a.route("GET vmm/ahv/config/vms/{id}/disks/{disk}", func(w http.ResponseWriter, r *http.Request) error {
		vm, err := a.copyOf(r.PathValue("id"))
		if err != nil {
			return err
		}
		i := slices.IndexFunc(vm.Disks, func(d state.Disk) bool { return d.ID == r.PathValue("disk") })
		if i < 0 {
			return state.Missing("disk", r.PathValue("disk"))
		}
		return one(w, r, vmPackage+"GetDiskApiResponse", diskObject(vm.Disks[i]), vm.Version)
	})
	a.route("POST vmm/ahv/config/vms/{id}/disks", func(w http.ResponseWriter, r *http.Request) error {
		var body diskBody
		if err := decode(r, &body); err != nil {
			return err
		}
		version, err := match(r, r.PathValue("id"), false)
		if err != nil {
			return err
		}
		if err := body.check(); err != nil {
			return err
		}
		task, err := a.prism.AddDisk(r.PathValue("id"), body.spec(false), version)
		return accepted(w, r, task, err)
	})
	a.route("DELETE vmm/ahv/config/vms/{id}/disks/{disk}", func(w http.ResponseWriter, r *http.Request) error {
		task, err := a.prism.RemoveDisk(r.PathValue("id"), r.PathValue("disk"), -1)
		return accepted(w, r, task, err)
	})
	a.route("GET vmm/ahv/config/vms/{id}/nics", func(w http.ResponseWriter, r *http.Request) error {
		vm, err := a.copyOf(r.PathValue("id"))
		if err != nil {
			return err
		}
		var all []rest.Object
		for _, n := range vm.NICs {
			all = append(all, nicObject(n, vm.Power == state.On))
		}
		return list(w, r, vmPackage+"ListNicsApiResponse", all)
	})
}

func (a *API) copyOf(id string) (vm state.VM, err error) {
	err = state.Missing("VM", id)
	a.prism.Read(func(d *state.Data) {
		if found := d.VM(id); found != nil {
			vm, err = *found, nil
			vm.Disks, vm.NICs = slices.Clone(found.Disks), slices.Clone(found.NICs)
		}
	})
	return vm, err
}
