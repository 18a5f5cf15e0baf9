package v4

import (
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/lab/prism/rest"
	"github.com/braggdev/bragg/internal/lab/prism/state"
)

func (a *API) vmRoutes() {
	a.route("GET vmm/ahv/config/vms", func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, vm := range d.VMs {
				all = append(all, vmObject(d, vm))
			}
		})
		return list(w, r, "vmm.v4.ahv.config.ListVmsApiResponse", all)
	})
	a.route("GET vmm/ahv/config/vms/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var o rest.Object
		var version int
		a.prism.Read(func(d *state.Data) {
			if vm := d.VM(r.PathValue("id")); vm != nil {
				o, version = vmObject(d, vm), vm.Version
			}
		})
		if o == nil {
			return state.Missing("VM", r.PathValue("id"))
		}
		return one(w, r, "vmm.v4.ahv.config.GetVmApiResponse", o, version)
	})
	a.route("POST vmm/ahv/config/vms", func(w http.ResponseWriter, r *http.Request) error {
		var body vmBody
		if err := decode(r, &body); err != nil {
			return err
		}
		spec, err := body.spec()
		if err != nil {
			return err
		}
		task, _, err := a.prism.CreateVM(spec)
		return accepted(w, r, task, err)
	})
	a.route("PUT vmm/ahv/config/vms/{id}", a.updateVM)
	a.route("DELETE vmm/ahv/config/vms/{id}", func(w http.ResponseWriter, r *http.Request) error {
		return a.onVM(w, r, func(id string, version int) (string, error) { return a.prism.DeleteVM(id, version) })
	})
	for _, action := range []state.Transition{
		state.PowerOn, state.PowerOff, state.PowerCycle, state.Reset, state.Shutdown, state.Reboot, state.GuestShutdown, state.GuestReboot,
	} {
		a.route("POST vmm/ahv/config/vms/{id}/$actions/"+string(action), func(w http.ResponseWriter, r *http.Request) error {
			return a.onVM(w, r, func(id string, version int) (string, error) { return a.prism.SwitchPower(id, action, "", version) })
		})
	}
	a.actionRoutes()
}

// onVM carries out what needs the ETag of a VM.
func (a *API) onVM(w http.ResponseWriter, r *http.Request, do func(id string, version int) (string, error)) error {
	id := r.PathValue("id")
	version, err := match(r, id, true)
	if err != nil {
		return err
	}
	task, err := do(id, version)
	return accepted(w, r, task, err)
}

func (a *API) actionRoutes() {
	a.route("POST vmm/ahv/config/vms/{id}/$actions/migrate-to-host", func(w http.ResponseWriter, r *http.Request) error {
		var body struct{ Host reference }
		if err := decode(r, &body); err != nil {
			return err
		}
		if body.Host.ExtID == "" {
			return state.Invalidf("host: the reference is required")
		}
		return a.onVM(w, r, func(id string, version int) (string, error) { return a.prism.Migrate(id, body.Host.ExtID, version) })
	})
	a.route("POST vmm/ahv/config/vms/{id}/$actions/clone", a.cloneVM)
	a.route("POST vmm/ahv/config/vms/{id}/$actions/revert", func(w http.ResponseWriter, r *http.Request) error {
		var body struct{ VMRecoveryPointExtID string }
		if err := decode(r, &body); err != nil {
			return err
		}
		return a.onVM(w, r, func(id string, version int) (string, error) {
			return a.prism.Revert(id, body.VMRecoveryPointExtID, version)
		})
	})
	for action, add := range map[string]bool{"associate-categories": true, "disassociate-categories": false} {
		a.route("POST vmm/ahv/config/vms/{id}/$actions/"+action, func(w http.ResponseWriter, r *http.Request) error {
			var body struct{ Categories []reference }
			if err := decode(r, &body); err != nil {
				return err
			}
			return a.onVM(w, r, func(id string, version int) (string, error) {
				return a.prism.CategorizeVM(id, ids(body.Categories), add, version)
			})
		})
	}
	a.route("POST vmm/ahv/config/vms/{id}/$actions/customize-guest", func(w http.ResponseWriter, r *http.Request) error {
		var body customization
		if err := decode(r, &body); err != nil {
			return err
		}
		user, meta, kind, err := body.read()
		if err != nil {
			return err
		}
		return a.onVM(w, r, func(id string, version int) (string, error) {
			return a.prism.UpdateVM(id, version, func(_ *state.Data, vm *state.VM) error {
				vm.UserData, vm.MetaData, vm.DataSource = user, meta, kind
				return nil
			})
		})
	})
}

func (a *API) cloneVM(w http.ResponseWriter, r *http.Request) error {
	var body vmBody
	if err := decode(r, &body); err != nil {
		return err
	}
	user, meta, kind, err := body.GuestCustomization.read()
	if err != nil {
		return err
	}
	return a.onVM(w, r, func(id string, version int) (string, error) {
		task, _, err := a.prism.CloneVM(id, version, func(s *state.VMSpec) {
			replace(&s.Name, body.Name)
			replace(&s.Sockets, body.NumSockets)
			replace(&s.CoresPerSocket, body.NumCoresPerSocket)
			replace(&s.ThreadsPerCore, body.NumThreadsPerCore)
			replace(&s.MemoryBytes, body.MemorySizeBytes)
			if user != nil {
				s.UserData, s.MetaData, s.DataSource = user, meta, kind
			}
			if body.NICs != nil {
				s.NICs = nics(body.NICs)
			}
		})
		return task, err
	})
}

func replace[T comparable](to *T, value T) {
	var zero T
	if value != zero {
		*to = value
	}
}

func (a *API) updateVM(w http.ResponseWriter, r *http.Request) error {
	var body vmBody
	if err := decode(r, &body); err != nil {
		return err
	}
	return a.onVM(w, r, func(id string, version int) (string, error) {
		return a.prism.UpdateVM(id, version, func(d *state.Data, vm *state.VM) error {
			if body.Name == "" {
				return state.Invalidf("name: required")
			}
			if vm.Power == state.On && (body.NumSockets != vm.Sockets || body.NumCoresPerSocket != vm.CoresPerSocket || body.MemorySizeBytes != vm.MemoryBytes) {
				return &state.Refusal{Kind: state.Busy, Message: "processors and memory of a VM that runs cannot be changed here"}
			}
			vm.Name, vm.Description, vm.Categories = body.Name, body.Description, ids(body.Categories)
			replace(&vm.Sockets, body.NumSockets)
			replace(&vm.CoresPerSocket, body.NumCoresPerSocket)
			replace(&vm.ThreadsPerCore, body.NumThreadsPerCore)
			replace(&vm.MemoryBytes, body.MemorySizeBytes)
			for _, id := range vm.Categories {
				if d.Category(id) == nil {
					return state.Missing("category", id)
				}
			}
			return nil
		})
	})
}

// vmBody is what requests say about a VM; fields that the emulator does not model are ignored.
type vmBody struct {
	Name, Description                                string
	NumSockets, NumCoresPerSocket, NumThreadsPerCore int
	MemorySizeBytes                                  int64
	Cluster, Host                                    reference
	Categories                                       []reference
	GuestCustomization                               customization
	Disks                                            []diskBody
	CDROMs                                           []diskBody `json:"cdRoms"`
	NICs                                             []nicBody  `json:"nics"`
}

type diskBody struct {
	DiskAddress *struct {
		BusType string
		Index   *int
	}
	BackingInfo *struct {
		ObjectType       string `json:"$objectType"`
		DiskSizeBytes    int64
		StorageContainer reference
		DataSource       *struct {
			Reference struct {
				ObjectType            string `json:"$objectType"`
				ImageExtID, DiskExtID string
			}
		}
	}
}

type nicBody struct {
	BackingInfo, NICBackingInfo struct{ MACAddress string }
	NetworkInfo, NICNetworkInfo struct {
		Subnet     reference
		IPv4Config struct {
			IPAddress struct{ Value string }
		}
	}
}

type customization struct {
	Config *struct {
		ObjectType      string `json:"$objectType"`
		DatasourceType  string
		Metadata        string
		CloudInitScript *struct {
			ObjectType string `json:"$objectType"`
			Value      string
		}
	}
}

// read returns the documents of cloud-init.
func (c customization) read() (user, meta []byte, kind string, err error) {
	if c.Config == nil {
		return nil, nil, "", nil
	}
	if err := typed("guestCustomization.config", c.Config.ObjectType, "vmm.v4.ahv.config.CloudInit", "vmm.v4.ahv.config.Sysprep"); err != nil {
		return nil, nil, "", err
	}
	if script := c.Config.CloudInitScript; script != nil {
		if err := typed("cloudInitScript", script.ObjectType, "vmm.v4.ahv.config.Userdata", "vmm.v4.ahv.config.CustomKeyValues"); err != nil {
			return nil, nil, "", err
		}
		if user, err = base64.StdEncoding.DecodeString(c.Config.CloudInitScript.Value); err != nil {
			return nil, nil, "", state.Invalidf("guestCustomization: cloudInitScript is not base64")
		}
	}
	if c.Config.Metadata != "" {
		if meta, err = base64.StdEncoding.DecodeString(c.Config.Metadata); err != nil {
			return nil, nil, "", state.Invalidf("guestCustomization: metadata is not base64")
		}
	}
	return user, meta, c.Config.DatasourceType, nil
}

func (b vmBody) spec() (state.VMSpec, error) {
	user, meta, kind, err := b.GuestCustomization.read()
	s := state.VMSpec{
		Name: b.Name, Description: b.Description, Sockets: b.NumSockets, CoresPerSocket: b.NumCoresPerSocket, ThreadsPerCore: b.NumThreadsPerCore,
		MemoryBytes: b.MemorySizeBytes, ClusterID: b.Cluster.ExtID, HostID: b.Host.ExtID, Categories: ids(b.Categories),
		UserData: user, MetaData: meta, DataSource: kind, NICs: nics(b.NICs),
	}
	for _, d := range b.Disks {
		err = errors.Join(err, d.check())
		s.Disks = append(s.Disks, d.spec(false))
	}
	for _, d := range b.CDROMs {
		s.Disks = append(s.Disks, d.spec(true))
	}
	return s, err
}

// typed refuses a field that may have several types and does not say which, as Prism's decoder does.
func typed(field, got string, want ...string) error {
	if slices.Contains(want, got) {
		return nil
	}
	return state.Invalidf("%s: $objectType is %q, want one of %s", field, got, strings.Join(want, ", "))
}

// check refuses what Prism cannot decode.
func (d diskBody) check() error {
	b := d.BackingInfo
	if b == nil {
		return nil
	}
	if err := typed("backingInfo", b.ObjectType, "vmm.v4.ahv.config.VmDisk", "vmm.v4.ahv.config.ADSFVolumeGroupReference"); err != nil {
		return err
	}
	if b.DataSource == nil {
		return nil
	}
	return typed("dataSource.reference", b.DataSource.Reference.ObjectType, "vmm.v4.ahv.config.ImageReference", "vmm.v4.ahv.config.VmDiskReference")
}

func (d diskBody) spec(cdrom bool) state.DiskSpec {
	s := state.DiskSpec{CDROM: cdrom, Index: -1}
	if d.DiskAddress != nil {
		if s.Bus = d.DiskAddress.BusType; d.DiskAddress.Index != nil {
			s.Index = *d.DiskAddress.Index
		}
	}
	if b := d.BackingInfo; b != nil {
		s.SizeBytes, s.ContainerID = b.DiskSizeBytes, b.StorageContainer.ExtID
		if b.DataSource != nil {
			s.ImageID, s.DiskID = b.DataSource.Reference.ImageExtID, b.DataSource.Reference.DiskExtID
		}
	}
	return s
}

func nics(all []nicBody) []state.NICSpec {
	var out []state.NICSpec
	for _, n := range all {
		s := state.NICSpec{SubnetID: n.NetworkInfo.Subnet.ExtID, MAC: n.BackingInfo.MACAddress, Address: n.NetworkInfo.IPv4Config.IPAddress.Value}
		replace(&s.SubnetID, n.NICNetworkInfo.Subnet.ExtID)
		replace(&s.MAC, n.NICBackingInfo.MACAddress)
		replace(&s.Address, n.NICNetworkInfo.IPv4Config.IPAddress.Value)
		out = append(out, s)
	}
	return out
}
