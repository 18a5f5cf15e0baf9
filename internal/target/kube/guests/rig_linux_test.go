package guests

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/braggdev/bragg/internal/lab/agentvm"
	"github.com/braggdev/bragg/internal/lab/prism/machine"
	"github.com/braggdev/bragg/internal/target/kube/kubetest"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/target/targettest/programtest"
	"github.com/braggdev/bragg/internal/testreq"
)

func TestMain(m *testing.M) {
	code := m.Run()
	programtest.Remove()
	os.Exit(code)
}

// rig is a cluster of two nodes with BMCs, a target file for it, and the program that users have.
type rig struct {
	*kubetest.Server
	*programtest.User
	secrets   []string // that nothing may hold
	disks     machine.Folder
	machines  *agentvm.Machines
	addresses atomic.Uint32
}

var nodeNames = []string{"node-1", "node-2"}

func newRig(t *testing.T) *rig {
	t.Helper()
	testreq.Root(t)
	u := programtest.NewUser(t)
	dir := filepath.Dir(u.File)
	r := &rig{
		Server: kubetest.New(t, nodeNames...), User: u, disks: machine.Folder(filepath.Join(dir, "disks")),
		machines: &agentvm.Machines{Agent: filepath.Join(filepath.Dir(u.Bragg), "bragg-agent"), Dir: dir},
	}
	t.Cleanup(r.machines.Close)
	r.KubeVirt, r.Run, r.Fill = &kubetest.KubeVirt{}, r.boot, r.fill
	r.secrets = []string{r.Token}
	var text strings.Builder
	fmt.Fprintf(&text, "provider: kubernetes\nname: simulated\nendpoint: %s\nca_file: %s/ca.pem\npool: fast\nallow: {node_power: true, maintenance: true}\n"+
		"options: {namespace: %s, kind: kubevirt, image: 'registry.example.com/debian:12', access_mode: ReadWriteMany, agents: direct}\n"+
		"credentials:\n  platform: {secret: {file: %s/token}}\n", r.URL, dir, kubetest.Namespace, dir)
	for name, c := range targettest.Credentials(t) {
		fmt.Fprintf(&text, "  %s: {user: %s, secret: {file: %s}}\n", name, c.User, c.Secret.File)
	}
	text.WriteString("nodes:\n")
	for i, name := range nodeNames {
		b := targettest.NewBMC(t, fmt.Sprintf("00000000-0000-4000-8000-%012d", i+1), func(on bool) { r.SetNode(name, on) }).Config
		fmt.Fprintf(&text, "  - {id: %s, bmc: {protocol: %s, address: %q, tls: none, credential: %s}}\n", name, b.Protocol, b.Address, b.Credential)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
	for name, data := range map[string][]byte{"target.yml": []byte(text.String()), "token": []byte(r.Token), "ca.pem": ca} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func at(o any, path ...string) any {
	for _, key := range path {
		m, _ := o.(kubetest.Object)
		o = m[key]
	}
	return o
}

func text(o any, path ...string) string {
	v, _ := at(o, path...).(string)
	return v
}

// fill makes the file of a claim or a snapshot: with the content of its source, if it has one.
func (r *rig) fill(o kubetest.Object) error {
	name := text(o, "metadata", "name")
	source, size := text(o, "spec", "dataSource", "name"), int64(0)
	if of := text(o, "spec", "source", "persistentVolumeClaimName"); of != "" {
		source = of
	} else {
		q, err := resource.ParseQuantity(text(o, "spec", "resources", "requests", "storage"))
		if err != nil {
			return err
		}
		size = q.Value()
	}
	if source != "" {
		return r.disks.Copy(source, name, size)
	}
	return r.disks.Create(name, size)
}

// boot starts the guest of a pod of an instance: an agent with the files of its claims as disks.
func (r *rig) boot(pod, secret kubetest.Object) (address string, stop func(), err error) {
	user, err := base64.StdEncoding.DecodeString(text(secret, "data", "user-data"))
	if err != nil {
		return "", nil, err
	}
	n := r.addresses.Add(1)
	v := agentvm.VM{ID: text(pod, "metadata", "name"), UserData: user, Address: fmt.Sprintf("127.78.%d.%d", n/250+1, n%250+1)}
	volumes, _ := at(pod, "spec", "volumes").([]any)
	for _, one := range volumes {
		claim := text(one, "persistentVolumeClaim", "claimName")
		if claim == "" {
			continue
		}
		name, path := text(one, "name"), r.disks.Path(claim)
		// The second is what udev makes of a serial number.
		for _, device := range []string{"/dev/" + name, "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_bragg-" + name} {
			v.Disks = append(v.Disks, agentvm.Disk{Device: device, Path: path})
		}
	}
	if err := r.machines.Start(v); err != nil {
		return "", nil, err
	}
	return v.Address, func() { r.machines.Stop(v.ID) }, nil
}
