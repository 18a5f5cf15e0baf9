package result

// Scaling is throughput against workers, of a run that starts the same closed loop on more and more VMs, step by step.
type Scaling struct {
	Workloads []string `json:"workloads"` // that are steps of the same load
	// Worker is what counts as one worker, in words.
	Worker string `json:"worker"`
	Unit   string `json:"unit"` // of throughput: "IOPS"
	// Sentence says where throughput stops growing, or why that is not known. Density says how much of linear scaling is left.
	Sentence string        `json:"sentence"`
	Density  string        `json:"density"`
	Answered bool          `json:"answered"` // false: the fit, if any, is not an answer
	Notes    []string      `json:"notes"`    // further reasons and restrictions, as sentences
	Steps    []ScalingStep `json:"steps"`    // in the order of time
	Fit      *ScalingFit   `json:"fit"`      // null: refused
}

// ScalingStep is one stretch of the run with a constant number of workers, without its first seconds.
type ScalingStep struct {
	FromNanos  int64  `json:"from_ns"`
	ToNanos    int64  `json:"to_ns"`
	Workers    int    `json:"workers"`
	Throughput Number `json:"throughput"`
	Fitted     Number `json:"fitted"`
	Share      Number `json:"share"` // of workers × the throughput of one worker
	Mean       Number `json:"mean"`  // response time, in nanoseconds
	Median     Number `json:"median"`
	P99        Number `json:"p99"`
}

// ScalingFit is the universal scalability law, fitted to the steps: X(N) = λN / (1 + σ(N−1) + κN(N−1)).
type ScalingFit struct {
	Model  string           `json:"model"`  // "usl", "amdahl" with a coherency of 0, "linear"
	Lambda ScalingEstimate  `json:"lambda"` // throughput of one worker
	Sigma  ScalingEstimate  `json:"sigma"`  // contention, a ratio
	Kappa  ScalingEstimate  `json:"kappa"`  // coherency, a ratio
	R2     Number           `json:"r2"`
	Peak   *ScalingEstimate `json:"peak"` // workers; null: no peak
	// PeakThroughput is null without a peak, or for one beyond twice the largest number of workers.
	PeakThroughput *ScalingEstimate  `json:"peak_throughput"`
	Limit          *ScalingEstimate  `json:"limit"` // that throughput approaches with a coherency of 0
	Curve          []ScalingEstimate `json:"curve"` // of throughput
}

// ScalingEstimate is a value and its 95 % interval. Workers is the place of a point of a curve, otherwise 0.
type ScalingEstimate struct {
	Workers Number `json:"workers,omitempty"`
	Value   Number `json:"value"`
	Low     Number `json:"low"`
	High    Number `json:"high"` // null: not bounded by the data
}
