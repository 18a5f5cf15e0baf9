package vcsim

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/lab/chassis"
)

// BMC is the Redfish service of one host, which switches its power: SetHostPower.
type BMC struct {
	Host             string // name in the vCenter
	*chassis.Service        // with the certificate of the vCenter
}

// BMCs starts the BMCs of all hosts on loopback, for the user chassis.User with that password. Close ends them.
func (s *Server) BMCs(password string) ([]*BMC, error) {
	all := slices.Collect(maps.Values(s.Hosts()))
	slices.SortFunc(all, func(a, b *simulator.HostSystem) int { return strings.Compare(a.Name, b.Name) })
	for _, h := range all {
		machine := chassis.Machine{Name: h.Name, UUID: h.Hardware.SystemInfo.Uuid}
		service, err := chassis.Serve(machine, password, switched{s, h}, s.server.TLS.Certificates[0])
		if err != nil {
			return nil, err
		}
		b := &BMC{Host: h.Name, Service: service}
		s.bmcs = append(s.bmcs, b)
	}
	return s.bmcs, nil
}

func (s *Server) closeBMCs() {
	for _, b := range s.bmcs {
		b.Close()
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

// Reset implements chassis.Chassis.
func (s switched) Reset(_ context.Context, kind chassis.Reset) error {
	return chassis.Switch(kind, s.Power(), func(on bool) error {
		s.server.SetHostPower(s.host.Self.Value, on)
		return nil
	})
}
