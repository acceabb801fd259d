package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the times in /proc/PID/stat on every Linux that Go runs on.
const tick = time.Second / 100

// readCost reads the resources that a process used from the kernel: its largest resident set
// (VmHWM), and its CPU time, in user and kernel mode.
func readCost(pid int) (cost, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return cost{}, fmt.Errorf("the program has ended: %w", err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return cost{}, fmt.Errorf("the program has ended: %w", err)
	}
	return parseCost(string(status), string(stat))
}

func parseCost(status, stat string) (cost, error) {
	peak, err := kibibytes(status, "VmHWM:")
	if err != nil {
		return cost{}, err
	}
	// The name of the program is in brackets and may contain anything.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return cost{}, fmt.Errorf("read times of the program: %q", stat)
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return cost{}, fmt.Errorf("read times of the program: %w", err)
		}
		ticks += n
	}
	return cost{peak: peak, cpu: time.Duration(ticks) * tick}, nil
}

// kibibytes finds "Name:   123 kB" and returns bytes.
func kibibytes(text, name string) (int64, error) {
	for line := range strings.SplitSeq(text, "\n") {
		rest, found := strings.CutPrefix(line, name)
		if !found {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
		return n << 10, err
	}
	return 0, fmt.Errorf("no %s: the program has ended", name)
}

// machine describes the machine of the measurement.
type machine struct {
	OS          string  `json:"os"`
	Cores       int     `json:"cores"`
	MemoryGiB   float64 `json:"memoryGiB"`
	Go          string  `json:"go"`
	LoadAverage string  `json:"loadAverageAtStart"`
}

func thisMachine() machine {
	m := machine{OS: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version()}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		if total, err := kibibytes(string(text), "MemTotal:"); err == nil {
			m.MemoryGiB = round(float64(total) / (1 << 30))
		}
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.LoadAverage = strings.Join(strings.Fields(string(text))[:3], " ")
	}
	return m
}
