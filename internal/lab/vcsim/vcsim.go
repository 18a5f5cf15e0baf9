// Package vcsim is a vCenter for tests and for trying: govmomi's simulator in this process, whose VMs are real agents. Hosts are
// names, statistics are simulated, and so is HA.
//
//	Start ──▶ vCenter with one cluster, TLS, one user (vcsim.go)
//	      └─▶ guests: a listener follows the power of VMs ──▶ a VM is on: an agent at an own 127.x.y.z with the identity in
//	          its guestinfo ──▶ the VM shows that address ──▶ the VM is off: the agent is killed (guests.go)
//	Count ──▶ statistics in fixed intervals by a clock of the vCenter's own, for tests (counters.go)
//	BMCs ──▶ SetHostPower ──▶ what a power cut of a host looks like in a vCenter (hosts.go) ──▶ HA starts its VMs elsewhere (ha.go)
package vcsim

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/lab/agentvm"
)

// The user of the vCenter, and names in it.
const (
	User     = "bragg@vsphere.local"
	Password = "s3cret-of-the-vcenter"
	Admin    = "admin@vsphere.local" // the harness
	Cluster  = "DC0_C0"
	Template = "linux"
	Foreign  = "DC0_C0_RP0_VM0" // a VM that runs and belongs to a user
)

// Options describe a vCenter.
type Options struct {
	Hosts    int    // 0: three
	Listen   string // "": a free port of 127.0.0.1
	Password string // of User; "": Password
	// HA is from the loss of a host to the restart of its VMs; 0: HA is off.
	HA time.Duration
	// Agent is the command of an agent; its configuration is appended as one argument. Empty: VMs have no guests.
	Agent []string
	Dir   string // for files of agents; "": a temporary one
	// Addresses is the first half of agents' addresses: "127.77". Empty: of this process.
	Addresses string
	// Program is bragg-agent, instead of Agent: as root each VM has a /dev of its own, with files in Dir as disks.
	Program string
}

// machines run VMs with disks.
type machines interface {
	Start(v agentvm.VM) error
	Stop(id string)
	Close()
}

// Server is a vCenter.
type Server struct {
	Model       *simulator.Model
	Endpoint    string // for the target file
	Fingerprint string
	options     Options
	server      *simulator.Server
	front       atomic.Pointer[func(http.Handler) http.Handler]
	client      *govmomi.Client // a session of the harness
	guests      *guests
	machines    machines // nil: VMs have no disks
	remove      func()   // removes the folder; nil: it stays
	bmcs        []*BMC
	work        sync.WaitGroup // of HA
	ctx         context.Context
	cancel      context.CancelFunc
}

// Start starts a vCenter with one cluster, two datastores, a template and a VM of a user.
func Start(o Options) (*Server, error) {
	log.SetOutput(io.Discard) // of the simulator
	o.Listen, o.Password = cmp.Or(o.Listen, "127.0.0.1:0"), cmp.Or(o.Password, Password)
	m := simulator.VPX()
	m.Host, m.Machine, m.Datastore, m.ClusterHost = 0, 2, 2, o.Hosts
	if o.Hosts == 0 {
		m.ClusterHost = 3
	}
	if err := m.Create(); err != nil {
		return nil, fmt.Errorf("start vCenter: %w", err)
	}
	var remove func()
	if o.Dir == "" {
		dir, release, err := agentvm.OwnFolder(os.TempDir())
		if err != nil {
			return nil, err
		}
		o.Dir, remove = dir, release
	}
	m.Service.TLS = &tls.Config{}
	m.Service.Listen = &url.URL{Host: o.Listen, User: url.UserPassword(User, o.Password)}
	s := &Server{Model: m, server: m.Service.NewServer(), remove: remove}
	if o.Program != "" {
		o.Agent, s.machines = []string{o.Program}, newMachines(o.Program, o.Dir)
	}
	s.options = o
	inner := s.server.Config.Handler
	s.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if front := s.front.Load(); front != nil {
			(*front)(inner).ServeHTTP(w, r)
			return
		}
		inner.ServeHTTP(w, r)
	})
	m.Map().SessionManager().ValidLogin = func(l *types.Login) bool {
		return l.UserName == User && l.Password == o.Password || l.UserName == Admin && l.Password == o.Password
	}
	sum := sha256.Sum256(s.server.Certificate().Raw)
	s.Endpoint, s.Fingerprint = s.server.URL.Host, hex.EncodeToString(sum[:])
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var err error
	if s.client, err = govmomi.NewClient(s.ctx, &url.URL{Scheme: "https", Host: s.server.URL.Host, Path: s.server.URL.Path, User: url.UserPassword(Admin, o.Password)}, true); err != nil {
		s.Close()
		return nil, fmt.Errorf("log in to the vCenter: %w", err)
	}
	if err := s.prepare(); err != nil {
		s.Close()
		return nil, err
	}
	if s.guests, err = watch(s); err == nil && o.HA > 0 {
		err = s.enableHA()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// prepare makes the second VM a template with one disk.
func (s *Server) prepare() error {
	var vm *object.VirtualMachine
	for _, one := range s.Model.Map().All("VirtualMachine") {
		if name := one.Entity().Name; name != Foreign {
			vm = object.NewVirtualMachine(s.client.Client, one.Reference())
		}
	}
	off, err := vm.PowerOff(s.ctx)
	if err == nil {
		err = off.Wait(s.ctx)
	}
	if err != nil {
		return fmt.Errorf("prepare the template: %w", err)
	}
	renamed, err := vm.Rename(s.ctx, Template)
	if err == nil {
		err = renamed.Wait(s.ctx)
	}
	if err == nil {
		err = vm.MarkAsTemplate(s.ctx)
	}
	if err != nil {
		return fmt.Errorf("prepare the template: %w", err)
	}
	return nil
}

// Front lets a test answer requests in place of the vCenter, or before it; nil ends that.
func (s *Server) Front(front func(vCenter http.Handler) http.Handler) {
	if front == nil {
		s.front.Store(nil)
		return
	}
	s.front.Store(&front)
}

// Handler answers requests of the API in this process.
func (s *Server) Handler() http.Handler { return s.server.Config.Handler }

// Client is the session of the harness.
func (s *Server) Client() *govmomi.Client { return s.client }

// VMs lists the VMs of the vCenter by name, with their objects.
func (s *Server) VMs() map[string]types.ManagedObjectReference {
	all := map[string]types.ManagedObjectReference{}
	for _, one := range s.Model.Map().All("VirtualMachine") {
		all[one.Entity().Name] = one.Reference()
	}
	return all
}

// Close ends the vCenter and all agents.
func (s *Server) Close() {
	s.closeBMCs()
	s.cancel()
	s.work.Wait()
	if s.guests != nil {
		s.guests.close()
	}
	s.server.CloseClientConnections()
	s.server.Close()
	s.Model.Remove()
	if s.machines != nil {
		s.machines.Close()
	}
	if s.remove != nil {
		s.remove()
	}
}
