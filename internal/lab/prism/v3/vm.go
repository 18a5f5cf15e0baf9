package v3

import (
	"encoding/base64"
	"net/http"

	"github.com/braggdev/bragg/internal/lab/prism/rest"
	"github.com/braggdev/bragg/internal/lab/prism/state"
)

// intent is the body of requests for VMs.
type intent struct {
	Metadata struct {
		SpecVersion *int              `json:"spec_version"`
		Categories  map[string]string `json:"categories"`
	} `json:"metadata"`
	Spec struct {
		Name, Description string
		Cluster           uuidRef `json:"cluster_reference"`
		Resources         resources
	} `json:"spec"`
}

type uuidRef struct{ UUID string }

type resources struct {
	Sockets    int                        `json:"num_sockets"`
	PerSocket  int                        `json:"num_vcpus_per_socket"`
	Threads    int                        `json:"num_threads_per_core"`
	MemoryMiB  int64                      `json:"memory_size_mib"`
	Power      string                     `json:"power_state"`
	Mechanism  struct{ Mechanism string } `json:"power_state_mechanism"`
	Disks      []disk                     `json:"disk_list"`
	NICs       []nic                      `json:"nic_list"`
	Customized *struct {
		CloudInit struct {
			User string `json:"user_data"`
			Meta string `json:"meta_data"`
		} `json:"cloud_init"`
	} `json:"guest_customization"`
}

type disk struct {
	Source uuidRef `json:"data_source_reference"`
	Device struct {
		Type    string `json:"device_type"`
		Address struct {
			Adapter string `json:"adapter_type"`
			Index   *int   `json:"device_index"`
		} `json:"disk_address"`
	} `json:"device_properties"`
	SizeBytes int64 `json:"disk_size_bytes"`
	SizeMiB   int64 `json:"disk_size_mib"`
	Storage   struct {
		Container uuidRef `json:"storage_container_reference"`
	} `json:"storage_config"`
}

type nic struct {
	Subnet    uuidRef               `json:"subnet_reference"`
	MAC       string                `json:"mac_address"`
	Endpoints []struct{ IP string } `json:"ip_endpoint_list"`
}

const mebibyte = 1 << 20

func (a *API) vmRoutes() {
	a.route("POST vms", func(w http.ResponseWriter, r *http.Request) error {
		var body intent
		if err := decode(r, &body); err != nil {
			return err
		}
		spec, err := body.vmSpec()
		if err != nil {
			return err
		}
		if spec.Categories, err = a.prism.CategoriesOf(body.Metadata.Categories); err != nil {
			return err
		}
		task, id, err := a.prism.CreateVM(spec)
		return accepted(w, rest.Object{"metadata": rest.Object{"kind": "vm", "uuid": id, "spec_version": 0}}, task, err)
	})
	a.route("POST vms/list", func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, vm := range d.VMs {
				all = append(all, vmObject(d, vm))
			}
		})
		return list(w, r, "vm", all)
	})
	a.route("GET vms/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var o rest.Object
		a.prism.Read(func(d *state.Data) {
			if vm := d.VM(r.PathValue("id")); vm != nil {
				o = vmObject(d, vm)
			}
		})
		if o == nil {
			return state.Missing("VM", r.PathValue("id"))
		}
		rest.Answer(w, http.StatusOK, o)
		return nil
	})
	a.route("PUT vms/{id}", a.updateVM)
	a.route("DELETE vms/{id}", func(w http.ResponseWriter, r *http.Request) error {
		task, err := a.prism.DeleteVM(r.PathValue("id"), -1)
		return accepted(w, rest.Object{"metadata": rest.Object{"kind": "vm", "uuid": r.PathValue("id")}}, task, err)
	})
	a.route("POST vms/{id}/clone", func(w http.ResponseWriter, r *http.Request) error {
		var body struct {
			Override struct {
				Name string `json:"name"`
			} `json:"override_spec"`
		}
		if err := decode(r, &body); err != nil {
			return err
		}
		task, _, err := a.prism.CloneVM(r.PathValue("id"), -1, func(s *state.VMSpec) {
			if body.Override.Name != "" {
				s.Name = body.Override.Name
			}
		})
		if err != nil {
			return err
		}
		rest.Answer(w, http.StatusAccepted, rest.Object{"task_uuid": task})
		return nil
	})
}

// updateVM makes a VM as its spec says. The spec must be that of the version that the client read.
func (a *API) updateVM(w http.ResponseWriter, r *http.Request) error {
	var body intent
	if err := decode(r, &body); err != nil {
		return err
	}
	id := r.PathValue("id")
	if body.Metadata.SpecVersion == nil {
		return state.Invalidf("metadata.spec_version: required")
	}
	var power state.Power
	a.prism.Read(func(d *state.Data) {
		if vm := d.VM(id); vm != nil {
			power = vm.Power
		}
	})
	categories, err := a.prism.CategoriesOf(body.Metadata.Categories)
	if err != nil {
		return err
	}
	res := body.Spec.Resources
	task, err := a.prism.ApplyVM(id, *body.Metadata.SpecVersion, func(_ *state.Data, vm *state.VM) error {
		if body.Spec.Name == "" || res.MemoryMiB <= 0 {
			return state.Invalidf("name and memory_size_mib: required")
		}
		if vm.Power == state.On && res.Power == "ON" && (res.Sockets != vm.Sockets || res.MemoryMiB*mebibyte != vm.MemoryBytes) {
			return state.Invalidf("processors and memory of a VM that runs cannot be changed here")
		}
		vm.Name, vm.Description, vm.Categories = body.Spec.Name, body.Spec.Description, categories
		vm.Sockets, vm.CoresPerSocket, vm.MemoryBytes = max(1, res.Sockets), max(1, res.PerSocket), res.MemoryMiB*mebibyte
		return nil
	}, transition(power, res))
	return accepted(w, rest.Object{"metadata": rest.Object{"kind": "vm", "uuid": id, "spec_version": *body.Metadata.SpecVersion + 1}}, task, err)
}

// transition is what leads from a state of power to the one of a spec.
func transition(from state.Power, to resources) state.Transition {
	switch {
	case to.Power == "ON" && from == state.Off:
		return state.PowerOn
	case to.Power == "OFF" && from == state.On && (to.Mechanism.Mechanism == "ACPI" || to.Mechanism.Mechanism == "GUEST"):
		return state.Shutdown
	case to.Power == "OFF" && from == state.On:
		return state.PowerOff
	}
	return ""
}

func (b intent) vmSpec() (state.VMSpec, error) {
	res := b.Spec.Resources
	s := state.VMSpec{
		Name: b.Spec.Name, Description: b.Spec.Description, Sockets: res.Sockets, CoresPerSocket: res.PerSocket, ThreadsPerCore: res.Threads,
		MemoryBytes: res.MemoryMiB * mebibyte, ClusterID: b.Spec.Cluster.UUID, PowerOn: res.Power == "ON", DataSource: "CONFIG_DRIVE_V2",
	}
	if c := res.Customized; c != nil {
		var err error
		if s.UserData, err = base64.StdEncoding.DecodeString(c.CloudInit.User); err != nil {
			return s, state.Invalidf("guest_customization.cloud_init.user_data is not base64")
		}
		if s.MetaData, err = base64.StdEncoding.DecodeString(c.CloudInit.Meta); err != nil {
			return s, state.Invalidf("guest_customization.cloud_init.meta_data is not base64")
		}
	}
	for _, d := range res.Disks {
		if d.SizeMiB != 0 && d.SizeBytes != 0 && (d.SizeBytes+mebibyte-1)/mebibyte != d.SizeMiB {
			return s, state.Invalidf("disk_size_mib %d does not match disk_size_bytes %d", d.SizeMiB, d.SizeBytes)
		}
		spec := state.DiskSpec{
			Bus: d.Device.Address.Adapter, Index: -1, CDROM: d.Device.Type == "CDROM", SizeBytes: d.SizeBytes, ContainerID: d.Storage.Container.UUID,
			ImageID: d.Source.UUID,
		}
		if spec.SizeBytes == 0 {
			spec.SizeBytes = d.SizeMiB * mebibyte
		}
		if d.Device.Address.Index != nil {
			spec.Index = *d.Device.Address.Index
		}
		s.Disks = append(s.Disks, spec)
	}
	for _, n := range res.NICs {
		spec := state.NICSpec{SubnetID: n.Subnet.UUID, MAC: n.MAC}
		if len(n.Endpoints) > 0 {
			spec.Address = n.Endpoints[0].IP
		}
		s.NICs = append(s.NICs, spec)
	}
	return s, nil
}

func vmObject(d *state.Data, vm *state.VM) rest.Object {
	meta := metadata("vm", vm.ID, vm.Version, vm.Created, vm.Updated)
	categories := rest.Object{}
	for _, id := range vm.Categories {
		if c := d.Category(id); c != nil {
			categories[c.Key] = c.Value
		}
	}
	meta["categories"] = categories
	cluster := refOf("cluster", d.Cluster.ID, d.Cluster.Name)
	status := resourcesObject(d, vm)
	if vm.Power == state.On {
		name := ""
		if h := d.Host(vm.HostID); h != nil {
			name = h.Name
		}
		status["host_reference"] = refOf("host", vm.HostID, name)
	}
	status["hypervisor_type"] = "AHV"
	return rest.Object{
		"api_version": apiVersion, "metadata": meta,
		"spec":   rest.Object{"name": vm.Name, "description": vm.Description, "cluster_reference": cluster, "resources": resourcesObject(d, vm)},
		"status": rest.Object{"state": "COMPLETE", "name": vm.Name, "description": vm.Description, "cluster_reference": cluster, "resources": status},
	}
}

func resourcesObject(d *state.Data, vm *state.VM) rest.Object {
	disks, nics := []rest.Object{}, []rest.Object{}
	for _, one := range vm.Disks {
		kind := "DISK"
		if one.CDROM {
			kind = "CDROM"
		}
		o := rest.Object{
			"uuid": one.ID, "disk_size_bytes": one.SizeBytes, "disk_size_mib": (one.SizeBytes + mebibyte - 1) / mebibyte,
			"device_properties": rest.Object{"device_type": kind, "disk_address": rest.Object{"adapter_type": one.Bus, "device_index": one.Index}},
		}
		if c := d.Container(one.ContainerID); c != nil {
			o["storage_config"] = rest.Object{"storage_container_reference": refOf("storage_container", c.ID, c.Name)}
		}
		if one.ImageID != "" {
			o["data_source_reference"] = rest.Object{"kind": "image", "uuid": one.ImageID}
		}
		disks = append(disks, o)
	}
	for _, n := range vm.NICs {
		nics = append(nics, rest.Object{
			"uuid": n.ID, "mac_address": n.MAC, "is_connected": n.Connected, "nic_type": "NORMAL_NIC", "subnet_reference": refOf("subnet", n.SubnetID, ""),
			"ip_endpoint_list": []rest.Object{{"ip": n.Address, "type": "ASSIGNED"}},
		})
	}
	return rest.Object{
		"num_sockets": vm.Sockets, "num_vcpus_per_socket": vm.CoresPerSocket, "num_threads_per_core": vm.ThreadsPerCore,
		"memory_size_mib": vm.MemoryBytes / mebibyte, "power_state": string(vm.Power), "power_state_mechanism": rest.Object{"mechanism": "HARD"},
		"disk_list": disks, "nic_list": nics,
	}
}
