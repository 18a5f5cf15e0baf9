package ahv

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/braggdev/bragg/internal/target/nutanix/prism"
)

// Host is a host of the cluster with its controller VM (CVM).
type Host struct {
	ExtID       string `json:"extId"`
	Name        string `json:"hostName"`
	Sockets     int    `json:"numberOfCpuSockets"`
	Cores       int    `json:"numberOfCpuCores"`
	Threads     int    `json:"numberOfCpuThreads"`
	FrequencyHz int64  `json:"cpuFrequencyHz"`
	CapacityHz  int64  `json:"cpuCapacityHz"`
	RAMBytes    int64  `json:"memorySizeBytes"`
	Status      string `json:"nodeStatus"`
	Maintenance string `json:"maintenanceState"`
	Degraded    bool   `json:"isDegraded"`
	Serial      string `json:"nodeSerial"` // of the machine; the serial of its block is that of several
	Model       string `json:"blockModel"`
	Hypervisor  struct {
		Address Address `json:"externalAddress"`
		Name    string  `json:"fullName"`
		State   string  `json:"state"`
		// Connection of AHV's management to the host: "CONNECTED" or "DISCONNECTED".
		Connection string `json:"acropolisConnectionState"`
	} `json:"hypervisor"`
	CVM struct {
		Address Address `json:"externalAddress"`
	} `json:"controllerVm"`
}

// normal are the states of a host on which VMs run.
var normal = map[string]bool{"": true, "ACROPOLIS_NORMAL": true, "RESERVED_FOR_HA_FAILOVER": true, "HA_FAILOVER_TARGET": true, "HA_HEALING_TARGET": true}

// Trouble says why VMs cannot run on the host now, in Prism's words; "": they can.
func (h Host) Trouble() string {
	switch {
	case h.Hypervisor.Connection == "DISCONNECTED":
		return "its hypervisor is DISCONNECTED"
	case !normal[h.Hypervisor.State]:
		return "its hypervisor is " + h.Hypervisor.State
	case h.Status != "" && h.Status != "NORMAL":
		return "its node status is " + h.Status
	case h.Maintenance != "" && h.Maintenance != "normal" && h.Maintenance != "NORMAL" && h.Maintenance != "kNull":
		return "its maintenance state is " + h.Maintenance
	case h.Degraded:
		return "Prism calls it degraded"
	}
	return ""
}

// CPUs are the logical processors, or the cores where Prism does not count threads.
func (h Host) CPUs() int { return max(h.Threads, h.Cores) }

// Hosts lists the hosts of the cluster, in no particular order.
func (c *Cluster) Hosts(ctx context.Context) ([]Host, error) {
	return prism.List[Host](ctx, c.Prism, "clustermgmt", "config/clusters/"+url.PathEscape(c.ID)+"/hosts", nil)
}

func (c *Cluster) hostOperations(host string) string {
	return "operations/clusters/" + url.PathEscape(c.ID) + "/hosts/" + url.PathEscape(host)
}

// EnterMaintenance evacuates a host; it ends when the host is in maintenance.
func (c *Cluster) EnterMaintenance(ctx context.Context, host string) error {
	return c.maintain(ctx, host, "enter-host-maintenance", map[string]any{"shouldRollbackOnFailure": true, "timeoutSeconds": 3600})
}

// ExitMaintenance lets VMs run on a host again.
func (c *Cluster) ExitMaintenance(ctx context.Context, host string) error {
	return c.maintain(ctx, host, "exit-host-maintenance", map[string]any{})
}

func (c *Cluster) maintain(ctx context.Context, host, name string, body any) error {
	_, err := c.Prism.Change(ctx, "clustermgmt", "config/clusters/"+url.PathEscape(c.ID)+"/hosts/"+url.PathEscape(host),
		func(json.RawMessage) (prism.Request, error) {
			r := action(name, body)
			r.Namespace, r.Path = "clustermgmt", c.hostOperations(host)+r.Path
			return r, nil
		})
	return err
}

// InMaintenance reports whether the host is in maintenance, and no VM runs on it.
func (h Host) InMaintenance() bool {
	switch h.Maintenance {
	case "entered_maintenance_mode", "ENTERED_MAINTENANCE_MODE", "kMaintenance":
		return true
	}
	return h.Hypervisor.State == "ENTERED_MAINTENANCE_MODE"
}
