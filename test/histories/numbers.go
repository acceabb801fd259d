package histories

// number assigns a number to a template's revision, as the workload's controller does. The
// Deployment controller doesn't make a revision during a pause, but an existing one becomes
// current at once. The Rollout controller makes one, but no pods from it.
func (m *Model) number(template string, makes bool) {
	if makes {
		m.running = template
	}
	if len(m.revisions.numbers[template]) == 0 && !makes && !m.revisions.canary {
		return
	}
	next := int64(1)
	for other, numbers := range m.revisions.numbers {
		if other != template {
			next = max(next, numbers[len(numbers)-1]+1)
		}
	}
	if m.last(template) < next {
		m.revisions.numbers[template] = append(m.revisions.numbers[template], next)
	}
}

// unnumber: the workload's controller has not acted on a template, which was replaced in the
// meantime.
func (m *Model) unnumber(template string) {
	if numbers := m.revisions.numbers[template]; len(numbers) > 0 {
		m.revisions.numbers[template] = numbers[:len(numbers)-1]
	}
	if len(m.revisions.numbers[template]) == 0 {
		delete(m.revisions.numbers, template)
	}
}

// newest is the highest number of all revisions.
func (m *Model) newest() int64 {
	n := int64(0)
	for template := range m.revisions.numbers {
		n = max(n, m.last(template))
	}
	return n
}

// last is the number of a template's revision, zero when there is none.
func (m *Model) last(template string) int64 {
	if numbers := m.revisions.numbers[template]; len(numbers) > 0 {
		return numbers[len(numbers)-1]
	}
	return 0
}
