//go:build race

package labtest

// raceEnabled tells that this test was built with the race detector.
const raceEnabled = true
