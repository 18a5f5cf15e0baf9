package v2

import (
	"net/http"

	"github.com/braggdev/bragg/internal/lab/prism/rest"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/lab/prism/stats"
)

func (a *API) vmRoutes() {
	a.route("GET vms", func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, vm := range d.VMs {
				all = append(all, vmObject(vm))
			}
		})
		return list(w, r, all)
	})
	a.route("GET vms/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var o rest.Object
		a.prism.Read(func(d *state.Data) {
			if vm := d.VM(r.PathValue("id")); vm != nil {
				o = vmObject(vm)
			}
		})
		return found(w, r, "VM", o)
	})
	a.route("PUT vms/{id}", a.updateVM)
	a.route("POST vms/{id}/set_power_state", func(w http.ResponseWriter, r *http.Request) error {
		var body struct {
			Transition string
			HostUUID   string `json:"host_uuid"`
		}
		if err := decode(r, &body); err != nil {
			return err
		}
		to, ok := map[string]state.Transition{
			"on": state.PowerOn, "off": state.PowerOff, "powercycle": state.PowerCycle, "reset": state.Reset, "acpi_shutdown": state.Shutdown,
			"acpi_reboot": state.Reboot,
		}[lower(body.Transition)]
		if !ok {
			return state.Invalidf("transition %q is unknown", body.Transition)
		}
		task, err := a.prism.SwitchPower(r.PathValue("id"), to, body.HostUUID, -1)
		return accepted(w, task, err)
	})
	a.route("POST vms/{id}/migrate", func(w http.ResponseWriter, r *http.Request) error {
		var body struct {
			HostUUID string `json:"host_uuid"`
		}
		if err := decode(r, &body); err != nil {
			return err
		}
		task, err := a.prism.Migrate(r.PathValue("id"), body.HostUUID, -1)
		return accepted(w, task, err)
	})
	a.clusterRoutes()
}

func (a *API) clusterRoutes() {
	a.route("GET hosts", func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, h := range d.Hosts {
				all = append(all, hostObject(d, h))
			}
		})
		for _, o := range all {
			o["stats"] = a.latest(stats.Host, o["uuid"].(string))
		}
		return list(w, r, all)
	})
	a.route("GET clusters", func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) { all = []rest.Object{clusterObject(d)} })
		return list(w, r, all)
	})
	a.route("GET cluster", func(w http.ResponseWriter, _ *http.Request) error {
		a.prism.Read(func(d *state.Data) { rest.Answer(w, http.StatusOK, clusterObject(d)) })
		return nil
	})
	a.route("GET ha", func(w http.ResponseWriter, _ *http.Request) error {
		condition := "BestEffort"
		if !a.prism.HA() {
			condition = "Disabled"
		}
		rest.Answer(w, http.StatusOK, rest.Object{"ha_state": condition, "failover_enabled": a.prism.HA()})
		return nil
	})
}

func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// updateVM sets what v4 has no field for: the priority of HA, and affinity to hosts.
func (a *API) updateVM(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name       string
		HAPriority *int `json:"ha_priority"`
		Affinity   *struct {
			Policy    string
			HostUUIDs []string `json:"host_uuids"`
		}
	}
	if err := decode(r, &body); err != nil {
		return err
	}
	task, err := a.prism.UpdateVM(r.PathValue("id"), -1, func(d *state.Data, vm *state.VM) error {
		if body.Name != "" {
			vm.Name = body.Name
		}
		set(&vm.HAPriority, body.HAPriority)
		if body.Affinity == nil {
			return nil
		}
		for _, id := range body.Affinity.HostUUIDs {
			if d.Host(id) == nil {
				return state.Missing("host", id)
			}
		}
		vm.Affinity = body.Affinity.HostUUIDs
		return nil
	})
	return accepted(w, task, err)
}

func vmObject(vm *state.VM) rest.Object {
	o := rest.Object{
		"uuid": vm.ID, "name": vm.Name, "description": vm.Description, "power_state": lower(string(vm.Power)), "num_vcpus": vm.Sockets,
		"num_cores_per_vcpu": vm.CoresPerSocket, "memory_mb": vm.MemoryBytes >> 20, "ha_priority": vm.HAPriority, "host_uuid": nil,
		"vm_logical_timestamp": vm.Version,
	}
	if vm.Power == state.On {
		o["host_uuid"] = vm.HostID
	}
	if len(vm.Affinity) > 0 {
		o["affinity"] = rest.Object{"policy": "AFFINITY", "host_uuids": vm.Affinity}
	}
	return o
}

func hostObject(d *state.Data, h *state.Host) rest.Object {
	condition := "NORMAL"
	if h.Down {
		condition = "HA_FAILOVER_SOURCE"
	}
	return rest.Object{
		"uuid": h.ID, "name": h.Name, "serial": h.Serial, "block_serial": h.BlockSerial, "hypervisor_address": h.Address, "controller_vm_backplane_ip": h.CVM,
		"service_vmexternal_ip": h.CVM, "ipmi_address": h.BMC, "num_cpu_cores": h.Cores, "num_cpu_sockets": 2, "memory_capacity_in_bytes": h.MemoryBytes,
		"num_vms": d.On(h.ID), "state": condition, "cluster_uuid": d.Cluster.ID, "host_in_maintenance_mode": h.Maintenance == state.Entered,
		"boot_time_in_usecs": h.Booted.UnixMicro(), "cpu_capacity_in_hz": 2400000000 * int64(h.Cores),
	}
}

func clusterObject(d *state.Data) rest.Object {
	return rest.Object{
		"uuid": d.Cluster.ID, "id": d.Cluster.ID, "name": d.Cluster.Name, "version": d.Cluster.ReleaseVersion, "num_nodes": len(d.Hosts),
		"cluster_external_ipaddress": d.Cluster.Address, "hypervisor_types": []string{"kKvm"},
		"cluster_redundancy_state": rest.Object{"current_redundancy_factor": d.Containers[0].Settings.ReplicationFactor},
	}
}
