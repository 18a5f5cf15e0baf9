package v4

import (
	"net/http"

	"github.com/braggdev/bragg/internal/lab/prism/rest"
	"github.com/braggdev/bragg/internal/lab/prism/state"
)

func (a *API) clusterRoutes() {
	a.route("GET clustermgmt/config/clusters", func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) { all = []rest.Object{clusterObject(d, &d.Cluster), clusterObject(d, &d.Central)} })
		return list(w, r, "clustermgmt.v4.config.ListClustersApiResponse", all)
	})
	a.route("GET clustermgmt/config/clusters/{id}", func(w http.ResponseWriter, r *http.Request) error {
		o, version, err := a.cluster(r.PathValue("id"))
		if err != nil {
			return err
		}
		return one(w, r, "clustermgmt.v4.config.GetClusterApiResponse", o, version)
	})
	hosts := func(w http.ResponseWriter, r *http.Request) error {
		if id := r.PathValue("cluster"); id != "" {
			if _, _, err := a.cluster(id); err != nil {
				return err
			}
		}
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, h := range d.Hosts {
				all = append(all, hostObject(d, h))
			}
		})
		return list(w, r, "clustermgmt.v4.config.ListHostsApiResponse", all)
	}
	a.route("GET clustermgmt/config/hosts", hosts)
	a.route("GET clustermgmt/config/clusters/{cluster}/hosts", hosts)
	a.route("GET clustermgmt/config/clusters/{cluster}/hosts/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var o rest.Object
		var version int
		a.prism.Read(func(d *state.Data) {
			if h := d.Host(r.PathValue("id")); h != nil && r.PathValue("cluster") == d.Cluster.ID {
				o, version = hostObject(d, h), h.Version
			}
		})
		if o == nil {
			return state.Missing("host", r.PathValue("id"))
		}
		return one(w, r, "clustermgmt.v4.config.GetHostApiResponse", o, version)
	})
	for action, do := range map[string]func(string) (string, error){
		"enter-host-maintenance": a.prism.EnterMaintenance, "exit-host-maintenance": a.prism.ExitMaintenance,
	} {
		a.route("POST clustermgmt/operations/clusters/{cluster}/hosts/{id}/$actions/"+action, func(w http.ResponseWriter, r *http.Request) error {
			if _, _, err := a.cluster(r.PathValue("cluster")); err != nil {
				return err
			}
			task, err := do(r.PathValue("id"))
			return accepted(w, r, task, err)
		})
	}
	for action, add := range map[string]bool{"associate-categories": true, "disassociate-categories": false} {
		a.route("POST clustermgmt/config/clusters/{cluster}/hosts/{id}/$actions/"+action, func(w http.ResponseWriter, r *http.Request) error {
			var body struct{ Categories []string }
			if err := decode(r, &body); err != nil {
				return err
			}
			task, err := a.prism.CategorizeHost(r.PathValue("id"), body.Categories, add)
			return accepted(w, r, task, err)
		})
	}
	a.diskRoutes()
}

func (a *API) diskRoutes() {
	a.route("GET clustermgmt/config/disks", func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, h := range d.Hosts {
				for _, id := range h.DiskIDs {
					all = append(all, object("clustermgmt.v4.config.Disk", rest.Object{
						"extId": id, "clusterExtId": d.Cluster.ID, "clusterName": d.Cluster.Name, "hostName": h.Name, "nodeExtId": h.ID,
						"storageTier": "SSD_PCIE", "diskSizeBytes": diskBytes(d), "status": "NORMAL", "storagePoolExtId": d.Cluster.PoolID,
					}))
				}
			}
		})
		return list(w, r, "clustermgmt.v4.config.ListDisksApiResponse", all)
	})
	a.route("GET networking/config/subnets", func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, s := range d.Subnets {
				all = append(all, subnetObject(d, s))
			}
		})
		return list(w, r, "networking.v4.config.ListSubnetsApiResponse", all)
	})
	a.route("GET networking/config/subnets/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var o rest.Object
		var version int
		a.prism.Read(func(d *state.Data) {
			if s := d.Subnet(r.PathValue("id")); s != nil {
				o, version = subnetObject(d, s), s.Version
			}
		})
		if o == nil {
			return state.Missing("subnet", r.PathValue("id"))
		}
		return one(w, r, "networking.v4.config.GetSubnetApiResponse", o, version)
	})
}

func diskBytes(d *state.Data) int64 { return d.Cluster.CapacityBytes / int64(2*len(d.Hosts)) }

func (a *API) cluster(id string) (o rest.Object, version int, err error) {
	a.prism.Read(func(d *state.Data) {
		for _, c := range []*state.Cluster{&d.Cluster, &d.Central} {
			if c.ID == id {
				o, version = clusterObject(d, c), c.Version
			}
		}
	})
	if o == nil {
		err = state.Missing("cluster", id)
	}
	return o, version, err
}

func clusterObject(d *state.Data, c *state.Cluster) rest.Object {
	function, software, hypervisors := "AOS", "NOS", []string{"AHV"}
	nodes, vms := []rest.Object{}, len(d.VMs)
	factor := d.Containers[0].Settings.ReplicationFactor
	if c == &d.Central {
		function, software, hypervisors, vms, factor = "PRISM_CENTRAL", "PRISM_CENTRAL", nil, 0, 1
	} else {
		for _, h := range d.Hosts {
			nodes = append(nodes, object("clustermgmt.v4.config.NodeListItemReference", rest.Object{
				"nodeUuid": h.ID, "hostIp": ip(h.Address), "controllerVmIp": ip(h.CVM),
			}))
		}
	}
	config := object("clustermgmt.v4.config.ClusterConfigReference", rest.Object{
		"buildInfo": object("clustermgmt.v4.config.BuildReference", rest.Object{"buildType": "release", "version": c.ReleaseVersion}),
		"clusterSoftwareMap": []rest.Object{object("clustermgmt.v4.config.SoftwareMapReference", rest.Object{
			"softwareType": software, "version": c.ReleaseVersion,
		})},
		"clusterFunction": []string{function}, "timezone": "UTC", "redundancyFactor": factor, "isAvailable": true, "operationMode": "NORMAL",
		"clusterArch": "X86_64",
	})
	if hypervisors != nil {
		config["hypervisorTypes"] = hypervisors
	}
	return object("clustermgmt.v4.config.Cluster", rest.Object{
		"extId": c.ID, "name": c.Name, "config": config, "vmCount": vms, "upgradeStatus": "SUCCEEDED",
		"nodes":   object("clustermgmt.v4.config.NodeReference", rest.Object{"numberOfNodes": len(nodes), "nodeList": nodes}),
		"network": object("clustermgmt.v4.config.ClusterNetworkReference", rest.Object{"externalAddress": ip(c.Address)}),
	})
}

func hostObject(d *state.Data, h *state.Host) rest.Object {
	connection, hypervisor := "CONNECTED", "ACROPOLIS_NORMAL"
	switch {
	case h.Down:
		connection, hypervisor = "DISCONNECTED", "HA_FAILOVER_SOURCE"
	case h.Maintenance == state.Entering:
		hypervisor = "ENTERING_MAINTENANCE_MODE"
	case h.Maintenance == state.Entered:
		hypervisor = "ENTERED_MAINTENANCE_MODE"
	}
	o := object("clustermgmt.v4.config.Host", rest.Object{
		"extId": h.ID, "hostName": h.Name, "hostType": "HYPER_CONVERGED", "nodeSerial": h.Serial, "blockSerial": h.BlockSerial, "blockModel": "NX-1065-G8",
		"numberOfCpuCores": h.Cores, "numberOfCpuThreads": 2 * h.Cores, "numberOfCpuSockets": 2, "cpuFrequencyHz": 2400000000,
		"cpuCapacityHz": 2400000000 * int64(h.Cores), "cpuModel": "simulated", "memorySizeBytes": h.MemoryBytes, "bootTimeUsecs": h.Booted.UnixMicro(),
		"maintenanceState": string(h.Maintenance), "nodeStatus": "NORMAL", "isDegraded": false,
		"cluster":      object("clustermgmt.v4.config.ClusterReference", rest.Object{"uuid": d.Cluster.ID, "name": d.Cluster.Name}),
		"controllerVm": object("clustermgmt.v4.config.ControllerVmReference", rest.Object{"externalAddress": ip(h.CVM), "isInMaintenanceMode": false}),
		"hypervisor": object("clustermgmt.v4.config.HypervisorReference", rest.Object{
			"externalAddress": ip(h.Address), "type": "AHV", "fullName": "Nutanix 20230302 (simulated)", "numberOfVms": d.On(h.ID), "state": hypervisor,
			"acropolisConnectionState": connection,
		}),
	})
	if h.BMC != "" {
		o["ipmi"] = object("clustermgmt.v4.config.IpmiReference", rest.Object{"ip": ip(h.BMC), "username": "ADMIN"})
	}
	return o
}

func subnetObject(d *state.Data, s *state.Subnet) rest.Object {
	return object("networking.v4.config.Subnet", rest.Object{
		"extId": s.ID, "name": s.Name, "subnetType": "VLAN", "networkId": s.VLAN, "clusterReference": d.Cluster.ID, "clusterName": d.Cluster.Name,
		"isExternal": false, "ipPrefix": s.Prefix.String(),
		"ipConfig": []rest.Object{object("networking.v4.config.IPConfig", rest.Object{"ipv4": object("networking.v4.config.IPv4Config", rest.Object{
			"ipSubnet": object("networking.v4.config.IPv4Subnet", rest.Object{"ip": ipv4(s.Prefix.Addr().String()), "prefixLength": s.Prefix.Bits()}),
		})})},
	})
}
