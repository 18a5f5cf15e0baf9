// Package prism is an emulator of Prism Central with one AHV cluster, for tests and for trying: stateful, on loopback, with agents as
// VMs. It shows whether clients work, not how fast a cluster is: hosts are names, storage is a folder of this machine, statistics are simulated.
//
//	client ──TLS──▶ rest.Gate: faults, login, idempotency ──▶ v4, v3, v2 ──▶ state: hosts, VMs, tasks, HA
//	                                                                          ├──▶ machine.Processes: bragg-agent at 127.x.y.z
//	                                                                          └──▶ machine.Folder: contents of disks
//	CutHost, RestoreHost ◀── BMCs of a test           faults.Script ──▶ what goes wrong
package prism

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/lab/agentvm"
	"github.com/braggdev/bragg/internal/lab/chassis"
	"github.com/braggdev/bragg/internal/lab/prism/faults"
	"github.com/braggdev/bragg/internal/lab/prism/machine"
	"github.com/braggdev/bragg/internal/lab/prism/rest"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/lab/prism/stats"
	"github.com/braggdev/bragg/internal/lab/prism/v2"
	"github.com/braggdev/bragg/internal/lab/prism/v3"
	"github.com/braggdev/bragg/internal/lab/prism/v4"
)

// Options configures an emulator. The zero value is a cluster of three hosts whose VMs run nothing.
type Options struct {
	// State is the cluster. Its Disks, Machines, Network and Timing are the emulator's unless they are set.
	State state.Options
	// Folder is for disks and VMs; "": a temporary one, which Close removes, or the next emulator of this user if this one is killed.
	Folder string
	// Agent starts an agent when the path of its configuration is appended; nil: VMs run nothing, unless State.Machines is set.
	Agent []string
	// Listen is "127.0.0.1:0" if empty.
	Listen      string
	Credentials rest.Credentials // User and Password are made if they are empty; APIKey: none
	Certificate *tls.Certificate // nil: a new one
	SessionMax  time.Duration    // 15 minutes if 0
	Version     string           // of v4; "v4.3"
	Stats       stats.Source     // stats.Simulated
	Faults      []faults.Rule
}

// Emulator serves until Close. State, Faults and Gate may be used at any time.
type Emulator struct {
	URL         string // https://127.0.0.1:port
	Address     string // 127.0.0.1:port
	Fingerprint string // SHA-256 of the certificate, in lower-case hex
	Credentials rest.Credentials

	State   *state.Prism
	Faults  *faults.Script
	Gate    *rest.Gate
	Machine *machine.Processes // nil where VMs run nothing
	Network string             // of VMs

	certificate tls.Certificate
	bmcs        []*BMC
	front       atomic.Pointer[http.Handler]

	server  *http.Server
	served  chan struct{}
	network *machine.Network
	remove  func() // removes the folder; nil: it stays
}

// New starts an emulator.
func New(o Options) (*Emulator, error) {
	e := &Emulator{Faults: &faults.Script{}, Credentials: o.Credentials, served: make(chan struct{})}
	e.Faults.Add(o.Faults...)
	if err := e.prepare(&o); err != nil {
		e.release()
		return nil, err
	}
	e.State = state.New(o.State)
	e.Faults.Act = e.act
	if e.Machine != nil {
		e.Machine.Ended = e.State.Ended
	}
	if o.Stats == nil {
		o.Stats = stats.Simulated{}
	}
	e.Gate = rest.NewGate(e.routes(o), rest.GateOptions{
		Credentials: e.Credentials, SessionMax: o.SessionMax, Faults: e.Faults, Fail: fail,
	})
	e.Front(func(gate http.Handler) http.Handler { return gate })
	if err := e.listen(o); err != nil {
		e.State.Close()
		e.release()
		return nil, err
	}
	return e, nil
}

// Front puts a handler of a test before the gate, in place of the one that Front put there earlier.
func (e *Emulator) Front(before func(gate http.Handler) http.Handler) {
	h := before(e.Gate)
	e.front.Store(&h)
}

// prepare makes the folder, the network and the machines.
func (e *Emulator) prepare(o *Options) error {
	if o.Folder == "" {
		dir, release, err := agentvm.OwnFolder(os.TempDir())
		if err != nil {
			return err
		}
		o.Folder, e.remove = dir, release
	}
	if o.State.Disks == nil {
		o.State.Disks = machine.Folder(filepath.Join(o.Folder, "disks"))
	}
	if len(o.Agent) > 0 && o.State.Machines == nil {
		network, err := machine.ClaimNetwork()
		if err != nil {
			return err
		}
		e.network, o.State.Network = network, network.Prefix
		e.Machine = &machine.Processes{Command: o.Agent, Folder: filepath.Join(o.Folder, "vms")}
		o.State.Machines = e.Machine
	}
	if o.State.Timing == nil {
		duration := o.State.TaskDuration
		o.State.Timing = func(operation, name string) state.Timing { return e.Faults.Timing(operation, name, duration) }
	}
	if e.Credentials.User == "" {
		e.Credentials.User = "admin"
	}
	if e.Credentials.Password == "" {
		e.Credentials.Password = secret()
	}
	return nil
}

func secret() string {
	var b [18]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// routes is the handler of all versions.
func (e *Emulator) routes(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", v4.New(e.State, v4.Options{Version: o.Version, Stats: o.Stats}))
	mux.Handle(v3.Prefix, v3.New(e.State))
	older := v2.New(e.State, o.Stats)
	for _, prefix := range v2.Prefixes() {
		mux.Handle(prefix, older)
	}
	return mux
}

// fail writes an error in the shape of the API that a request is for.
func fail(w http.ResponseWriter, r *http.Request, status int, message string) {
	write := v4.Fail
	if strings.HasPrefix(r.URL.Path, v3.Prefix) {
		write = v3.Fail
	}
	for _, prefix := range v2.Prefixes() {
		if strings.HasPrefix(r.URL.Path, prefix) {
			write = v2.Fail
		}
	}
	write(w, r, status, message)
}

func (e *Emulator) listen(o Options) error {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Certificate == nil {
		made, err := selfSigned()
		if err != nil {
			return err
		}
		o.Certificate = &made
	}
	certificate := *o.Certificate
	e.certificate = certificate
	sum := sha256.Sum256(certificate.Certificate[0])
	e.Fingerprint = hex.EncodeToString(sum[:])
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listen for Prism's clients: %w", err)
	}
	e.Address = l.Addr().String()
	e.URL = "https://" + e.Address
	e.server = &http.Server{
		Handler:           http.HandlerFunc(e.serve),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	go func() {
		defer close(e.served)
		_ = e.server.ServeTLS(l, "", "")
	}()
	return nil
}

// serve answers a request, with the time that the clock of the cluster shows.
func (e *Emulator) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", e.State.Now().Format(http.TimeFormat))
	(*e.front.Load()).ServeHTTP(w, r)
}

// selfSigned is a certificate as a new Prism has it: its own, for no name that clients use.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "*.nutanix.local", Organization: []string{"Bragg's emulator of Prism"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: []string{"*.nutanix.local"},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, err
}

// Close ends the server, all tasks and all VMs.
func (e *Emulator) Close() {
	e.closeBMCs()
	_ = e.server.Close()
	<-e.served
	e.State.Close()
	e.release()
}

func (e *Emulator) release() {
	if e.network != nil {
		e.network.Close()
	}
	if e.remove != nil {
		e.remove()
	}
}

// CutHost takes the power of a host away, by its id or name: its VMs die at once.
func (e *Emulator) CutHost(id string) error { return e.State.CutHost(id) }

// RestoreHost gives a host its power back.
func (e *Emulator) RestoreHost(id string) error { return e.State.RestoreHost(id) }

// act does to the cluster what a rule says. What it names and is not there stays so.
func (e *Emulator) act(rule faults.Rule) {
	if rule.CutHost != "" {
		_ = e.CutHost(rule.CutHost)
	}
	if rule.RestoreHost != "" {
		_ = e.RestoreHost(rule.RestoreHost)
	}
	var moved []string
	s := state.VMSpec{Name: rule.ForeignVM, Description: "of another client", MemoryBytes: 1 << 30}
	e.State.Read(func(d *state.Data) {
		s.ClusterID = d.Cluster.ID
		for _, vm := range d.VMs {
			if named, _ := path.Match(rule.MoveVM, vm.Name); named && vm.Power == state.On {
				moved = append(moved, vm.ID)
			}
		}
	})
	for _, id := range moved {
		_ = e.State.MoveVM(id, "")
	}
	if rule.ForeignVM != "" {
		if task, _, err := e.State.CreateVM(s); err == nil {
			_ = e.State.Await(task)
		}
	}
}

// AddImage makes an image of a file's contents, as an operator would have uploaded it before, and returns its id.
func (e *Emulator) AddImage(name string, contents io.Reader) (string, error) {
	task, id, err := e.State.CreateImage(state.Image{Name: name})
	if err != nil {
		return "", err
	}
	if err := e.State.Await(task); err != nil {
		return "", err
	}
	return id, e.State.WriteImage(id, contents)
}

// DiskPath is the file of a VM's disk, by the id of the disk.
func (e *Emulator) DiskPath(diskID string) string { return e.State.Disks().Path(diskID) }

// TargetFile is a target file of provider nutanix for this emulator, with the BMCs that were started. secretFile holds the password.
func (e *Emulator) TargetFile(secretFile string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "provider: nutanix\nname: %q\nendpoint: %q\nfingerprint: %q\n", "emulator of Prism", e.Address, "SHA256:"+e.Fingerprint)
	fmt.Fprintf(&b, "credentials:\n  platform: {user: %q, secret: {file: %q}}\n", e.Credentials.User, secretFile)
	if len(e.bmcs) > 0 {
		fmt.Fprintf(&b, "  bmc: {user: %q, secret: {file: %q}}\nnodes:\n", chassis.User, secretFile)
	}
	for _, h := range e.bmcs {
		fmt.Fprintf(&b, "  - id: %q\n    serial: %q\n    uuid: %q\n    bmc: {protocol: redfish, address: %q, credential: bmc, fingerprint: %q}\n",
			h.Host, h.Serial, h.UUID, h.Address, "SHA256:"+e.Fingerprint)
	}
	e.State.Read(func(d *state.Data) {
		fmt.Fprintf(&b, "pool: %q\nnetwork: %q\naddresses: dhcp\n", d.Containers[0].Name, d.Subnets[0].Name)
		for i, image := range d.Images {
			if i == 0 {
				b.WriteString("templates:\n")
			}
			fmt.Fprintf(&b, "  %q: %q\n", image.Name, image.Name)
		}
		fmt.Fprintf(&b, "options:\n  cluster: %q\n", d.Cluster.Name)
	})
	b.WriteString("facts:\n  platform: \"simulated: an emulator of Prism, with processes of one machine as VMs\"\n")
	b.WriteString("simulates:\n  node-metrics: \"computed from the time of day, not measured on hosts\"\n  vm-metrics: \"computed from the time of day, not measured on VMs\"\n" +
		"  container-settings: \"settings are kept and have no effect\"\n")
	b.WriteString("allow:\n  node_power: true\n  cvms: true\n  maintenance: true\n  container_settings: true\n")
	return b.String()
}
