package agent

// at is called wherever an agent could be cut off. The names are those of Failpoints.
func (s *Server) at(name string) { s.options.at(name) }

func (o *Options) at(name string) {
	if o.Failpoint != nil {
		o.Failpoint(name)
	}
}

// Failpoints lists the names that an agent passes, in about the order in which it passes them.
func Failpoints() []string {
	return []string{
		"agent.configured", "agent.ready", "agent.hello",
		"agent.order", "agent.admitted", "agent.prepare", "agent.prepared", "agent.answered", "agent.held", "agent.start",
		"agent.run", "agent.interval", "agent.buffered", "agent.stream", "agent.batch", "agent.acknowledge",
		"agent.stop", "agent.ended", "agent.closed", "agent.finished", "agent.remove", "agent.log", "agent.metrics",
	}
}
