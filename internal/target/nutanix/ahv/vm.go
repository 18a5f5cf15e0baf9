package ahv

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/google/uuid"

	"github.com/braggdev/bragg/internal/target/nutanix/prism"
)

// States of the power of VMs.
const (
	On  = "ON"
	Off = "OFF"
)

// VMRel and HostRel mark VMs and hosts among the objects that a task concerns.
const (
	VMRel   = "vmm:ahv:config:vm"
	HostRel = "clustermgmt:config:host"
)

// VM is a VM as Prism lists it.
type VM struct {
	ExtID       string `json:"extId"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Power       string `json:"powerState"`
	Host        *Ref   `json:"host"` // nil while it is off
	Cluster     *Ref   `json:"cluster"`
	Disks       []Disk `json:"disks"`
	NICs        []NIC  `json:"nics"`
	Categories  []Ref  `json:"categories"`
}

// HostID is the id of the host on which it runs; "" if it is off.
func (v VM) HostID() string {
	if v.Host == nil {
		return ""
	}
	return v.Host.ExtID
}

// Disk is a disk of a VM.
type Disk struct {
	ExtID   string `json:"extId"`
	Address struct {
		Bus   string `json:"busType"`
		Index int    `json:"index"`
	} `json:"diskAddress"`
	Backing struct {
		Bytes     int64 `json:"diskSizeBytes"`
		Container *Ref  `json:"storageContainer"`
	} `json:"backingInfo"`
}

// NIC is a network card of a VM. Later versions have its network in another field.
type NIC struct {
	Network  NICNetwork `json:"networkInfo"`
	Network2 NICNetwork `json:"nicNetworkInfo"`
}

// NICNetwork is how a card is connected.
type NICNetwork struct {
	Config struct {
		Address struct {
			Value string `json:"value"`
		} `json:"ipAddress"`
	} `json:"ipv4Config"`
	Info struct {
		Learned []struct {
			Value string `json:"value"`
		} `json:"learnedIpAddresses"`
	} `json:"ipv4Info"`
}

// Addresses are those that Prism assigned, then those that it saw in the traffic of the VM.
func (v VM) Addresses() []string {
	var assigned, learned []string
	for _, n := range v.NICs {
		for _, w := range []NICNetwork{n.Network, n.Network2} {
			if a := w.Config.Address.Value; a != "" {
				assigned = append(assigned, a)
			}
			for _, l := range w.Info.Learned {
				if l.Value != "" {
					learned = append(learned, l.Value)
				}
			}
		}
	}
	return append(assigned, learned...)
}

// Spec is a VM to make.
type Spec struct {
	Name, Description string
	Host              string // id; Prism may start it elsewhere
	Sockets           int
	Cores             int // per socket
	Threads           int // per core; 0: 1
	RAMBytes          int64
	Image             string // id, of the system disk
	Container         string // id, of data disks
	DiskBytes         []int64
	Subnet            string
	Address           string // to be assigned by the subnet; "": by DHCP
	UserData          []byte // of cloud-init; nil: none
	Categories        []Ref
}

// guestCustomization is the seed of a VM: a disk that Prism makes of it.
func guestCustomization(userData []byte) map[string]any {
	return map[string]any{"config": map[string]any{
		"$objectType": "vmm.v4.ahv.config.CloudInit", "datasourceType": "CONFIG_DRIVE_V2",
		"cloudInitScript": map[string]any{
			"$objectType": "vmm.v4.ahv.config.Userdata", "value": base64.StdEncoding.EncodeToString(userData),
		},
	}}
}

func (s Spec) nic() map[string]any {
	network := map[string]any{"nicType": "NORMAL_NIC", "subnet": Ref{s.Subnet}}
	if s.Address != "" {
		network["ipv4Config"] = map[string]any{"shouldAssignIp": true, "ipAddress": map[string]any{"value": s.Address, "prefixLength": 32}}
	}
	return map[string]any{"networkInfo": network}
}

func (s Spec) body(c *Cluster) map[string]any {
	disks := []any{disk(0, map[string]any{
		"dataSource":       map[string]any{"reference": map[string]any{"$objectType": "vmm.v4.ahv.config.ImageReference", "imageExtId": s.Image}},
		"storageContainer": Ref{s.Container},
	})}
	for i, size := range s.DiskBytes {
		disks = append(disks, disk(i+1, map[string]any{"diskSizeBytes": size, "storageContainer": Ref{s.Container}}))
	}
	body := s.common()
	body["description"], body["cluster"], body["host"], body["disks"] = s.Description, Ref{c.ID}, Ref{s.Host}, disks
	if len(s.Categories) > 0 {
		body["categories"] = s.Categories
	}
	return body
}

// common are the fields that new VMs and clones have.
func (s Spec) common() map[string]any {
	body := map[string]any{
		"name": s.Name, "numSockets": s.Sockets, "numCoresPerSocket": s.Cores, "numThreadsPerCore": max(1, s.Threads),
		"memorySizeBytes": s.RAMBytes, "nics": []any{s.nic()},
	}
	if s.UserData != nil {
		body["guestCustomization"] = guestCustomization(s.UserData)
	}
	return body
}

// disk is the disk at an index of the SCSI bus; the one at 0 is the system's.
func disk(index int, backing map[string]any) map[string]any {
	backing["$objectType"] = "vmm.v4.ahv.config.VmDisk"
	return map[string]any{"diskAddress": map[string]any{"busType": "SCSI", "index": index}, "backingInfo": backing}
}

// VMs lists the VMs of the cluster whose names begin with prefix; "": all. CVMs are not among them.
func (c *Cluster) VMs(ctx context.Context, prefix string) ([]VM, error) {
	var query url.Values
	if prefix != "" {
		query = prism.Filter("startswith(name,%s)", prefix)
	}
	all, err := prism.List[VM](ctx, c.Prism, "vmm", "ahv/config/vms", query)
	var ours []VM
	for _, v := range all {
		if v.Cluster == nil || v.Cluster.ExtID == c.ID {
			ours = append(ours, v)
		}
	}
	return ours, err
}

func vmPath(id string) string { return "ahv/config/vms/" + url.PathEscape(id) }

// VM reads one VM.
func (c *Cluster) VM(ctx context.Context, id string) (v VM, err error) {
	_, err = c.Prism.Get(ctx, "vmm", vmPath(id), nil, &v)
	return v, err
}

// Create makes a VM that is off and returns its id. request is that of the call, however often it is made.
func (c *Cluster) Create(ctx context.Context, s Spec, request uuid.UUID) (string, error) {
	t, err := c.Prism.Create(ctx, "vmm", "ahv/config/vms", s.body(c), request)
	return t.Of(VMRel), err
}

// Clone makes a copy of a VM that is off, with the data of its disks, and returns its id. Prism gives the copy the source's
// description: see Describe.
func (c *Cluster) Clone(ctx context.Context, source string, s Spec, request uuid.UUID) (string, error) {
	t, err := c.Prism.Change(ctx, "vmm", vmPath(source), func(json.RawMessage) (prism.Request, error) {
		// After a lost answer the clone may exist, and the request is refused by the ETag that it has changed.
		made, err := c.VMs(ctx, s.Name)
		if err != nil || len(made) > 0 {
			return prism.Request{}, err
		}
		r := action("clone", s.common())
		r.ID = request
		return r, nil
	})
	for _, e := range t.Entities {
		if e.Rel == VMRel && e.ExtID != source {
			return e.ExtID, err
		}
	}
	return "", err
}

// change makes a request on a VM with its current ETag.
func (c *Cluster) change(ctx context.Context, id string, r prism.Request) (prism.Task, error) {
	return c.Prism.Change(ctx, "vmm", vmPath(id), func(json.RawMessage) (prism.Request, error) { return r, nil })
}

// PowerOn starts a VM. One that runs is left as it is.
func (c *Cluster) PowerOn(ctx context.Context, id string) error {
	return c.power(ctx, id, On, "power-on")
}

// PowerOff cuts the power of a VM. One that is off is left as it is.
func (c *Cluster) PowerOff(ctx context.Context, id string) error {
	return c.power(ctx, id, Off, "power-off")
}

func (c *Cluster) power(ctx context.Context, id, want, name string) error {
	_, err := c.Prism.Change(ctx, "vmm", vmPath(id), func(object json.RawMessage) (prism.Request, error) {
		var now VM
		if err := json.Unmarshal(object, &now); err != nil || now.Power == want {
			return prism.Request{}, err
		}
		return action(name, nil), nil
	})
	if err == nil || prism.IsGone(err) || ctx.Err() != nil {
		return err
	}
	// Another call, or one whose answer was lost, may have been faster.
	if now, looked := c.VM(ctx, id); looked == nil && now.Power == want {
		return nil
	}
	return err
}

// Migrate moves a running VM to a host.
func (c *Cluster) Migrate(ctx context.Context, id, host string) error {
	_, err := c.change(ctx, id, action("migrate-to-host", map[string]any{"host": Ref{host}}))
	if err == nil || ctx.Err() != nil {
		return err
	}
	if now, looked := c.VM(ctx, id); looked == nil && now.HostID() == host {
		return nil
	}
	return err
}

// Describe replaces the description of a VM, and its categories unless they are nil.
func (c *Cluster) Describe(ctx context.Context, id, description string, categories []Ref) error {
	_, err := c.Prism.Change(ctx, "vmm", vmPath(id), func(object json.RawMessage) (prism.Request, error) {
		var now VM
		if err := json.Unmarshal(object, &now); err != nil || now.Description == description {
			return prism.Request{}, err
		}
		change := map[string]any{"description": description}
		if categories != nil {
			change["categories"] = categories
		}
		body, err := prism.Merge(object, change)
		return prism.Request{Method: http.MethodPut, Body: body}, err
	})
	return err
}

// Delete removes a VM with its disks. One that does not exist is not an error.
func (c *Cluster) Delete(ctx context.Context, id string) error {
	_, err := c.change(ctx, id, prism.Request{Method: http.MethodDelete})
	if prism.IsGone(err) {
		return nil
	}
	if err != nil && ctx.Err() == nil {
		if _, looked := c.VM(ctx, id); prism.IsGone(looked) {
			return nil
		}
	}
	return err
}
