package vcsim

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/lab/chassis"
)

// BMC is the Redfish service of one host, which switches its power: SetHostPower.
type BMC struct {
	Host    string // name in the vCenter
	Address string // 127.0.0.1:port, with the certificate of the vCenter

	server *http.Server
	served chan struct{}
}

// BMCs starts the BMCs of all hosts on loopback, for the user chassis.User with that password. Close ends them.
func (s *Server) BMCs(password string) ([]*BMC, error) {
	all := slices.Collect(maps.Values(s.Hosts()))
	slices.SortFunc(all, func(a, b *simulator.HostSystem) int { return strings.Compare(a.Name, b.Name) })
	for _, h := range all {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		uuid := h.Hardware.SystemInfo.Uuid
		machine := chassis.Machine{Name: h.Name, UUID: uuid, BMC: netip.MustParseAddr("127.0.0.1")}
		b := &BMC{Host: h.Name, Address: l.Addr().String(), served: make(chan struct{})}
		b.server = &http.Server{
			Handler: chassis.Redfish(machine, password, switched{s, h}), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
			TLSConfig: &tls.Config{Certificates: s.server.TLS.Certificates, MinVersion: tls.VersionTLS12},
		}
		go func() {
			defer close(b.served)
			_ = b.server.ServeTLS(l, "", "")
		}()
		s.bmcs = append(s.bmcs, b)
	}
	return s.bmcs, nil
}

func (s *Server) closeBMCs() {
	for _, b := range s.bmcs {
		_ = b.server.Close()
		<-b.served
	}
}

// switched is a host as its BMC sees it.
type switched struct {
	server *Server
	host   *simulator.HostSystem
}

// Power implements chassis.Chassis.
func (s switched) Power() chassis.Power {
	if s.server.HostState(s.host) == string(types.HostSystemConnectionStateConnected) {
		return chassis.PowerOn
	}
	return chassis.PowerOff
}

// Reset implements chassis.Chassis. A host has no system of its own, so that a graceful shutdown is a cut.
func (s switched) Reset(_ context.Context, kind chassis.Reset) error {
	if err := chassis.CheckReset(kind); err != nil {
		return err
	}
	id := s.host.Self.Value
	switch kind {
	case chassis.ResetOn, chassis.ResetForceOn:
		s.server.SetHostPower(id, true)
		return nil
	case chassis.ResetForceRestart, chassis.ResetPowerCycle:
		s.server.SetHostPower(id, false)
		s.server.SetHostPower(id, true)
		return nil
	}
	s.server.SetHostPower(id, kind == chassis.ResetPushPowerButton && s.Power() == chassis.PowerOff)
	return nil
}
