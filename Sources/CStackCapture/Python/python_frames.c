#include "python_frames.h"

#include <stdatomic.h>

#include "python_layout.h"

enum { INTERPRETER_LIMIT = 16, THREAD_LIMIT = 2048, OWNED_BY_NATIVE_STACK = 3 };

static stall_python python;
static python_layout layout;
static _Atomic(bool) is_known;

bool stall_python_use(const stall_python *found) {
    static atomic_flag is_taken = ATOMIC_FLAG_INIT;
    python_layout made;
    if (!stall_python_layout(found, &made) || atomic_flag_test_and_set(&is_taken)) return false;
    python = *found;
    layout = made;
    atomic_store_explicit(&is_known, true, memory_order_release);
    return true;
}

const python_layout *stall_python_known_layout(void) {
    return atomic_load_explicit(&is_known, memory_order_acquire) ? &layout : NULL;
}

// 0 without one, and for a thread that is in several interpreters: which of them it executes is not known from outside.
static uint64_t state_of(pid_t thread) {
    uint64_t interpreter = stall_python_word(python.runtime + layout.interpreters_head), found = 0;
    for (int i = 0; interpreter != 0 && i < INTERPRETER_LIMIT; i++) {
        uint64_t state = stall_python_word(interpreter + layout.threads_head);
        for (int j = 0; state != 0 && j < THREAD_LIMIT; j++) {
            if (stall_python_word(state + layout.native_id) == (uint64_t)thread) {
                if (found != 0) return 0;
                found = state;
            }
            state = stall_python_word(state + layout.thread_next);
        }
        interpreter = stall_python_word(interpreter + layout.interpreter_next);
    }
    return found;
}

static uint64_t word_in(const uint8_t *bytes, uint32_t offset) {
    uint64_t word;
    __builtin_memcpy(&word, bytes + offset, sizeof word);
    return word;
}

static bool is_shim(uint64_t code) {
    return layout.has_static_shims && code >= python.image_low && code < python.image_high;
}

static python_frame frame_of(uint64_t frame, uint64_t code, const uint8_t *bytes) {
    const uint64_t at = word_in(bytes, layout.frame_position), begin = code + layout.code_instructions;
    return (python_frame){
        .frame = frame,
        .code = code,
        .position = at > begin && at - begin < UINT32_MAX ? (uint32_t)((at - begin) / 2) : 0,
        .begins_evaluation = layout.marks_entry && bytes[layout.frame_entry] != 0,
    };
}

void stall_python_read(pid_t thread, python_stack *stack) {
    stack->count = 0;
    stack->lacks_outer = stack->lacks_inner = stack->is_broken = false;
    if (!stall_python_known_layout()) return;
    const uint64_t state = state_of(thread);
    uint64_t frame = state == 0 ? 0 : stall_python_word(state + layout.current_frame);
    if (layout.has_c_frame && frame != 0) frame = stall_python_word(frame + layout.c_frame);
    uint8_t bytes[FRAME_BYTES] = {0};
    uint64_t met = 0;
    for (uint32_t rounds = 1; frame != 0; rounds++) {
        stack->lacks_outer = stack->count == PYTHON_FRAME_LIMIT;
        if (stack->lacks_outer) return;
        // A frame that was freed meanwhile may lead anywhere, also in a circle: compared with the one of the last power of 2.
        stack->is_broken = rounds == 4 * PYTHON_FRAME_LIMIT || frame % 8 != 0 || frame == met
            || stall_read_memory(bytes, frame, layout.frame_bytes) < layout.frame_bytes;
        if (stack->is_broken) return;
        if ((rounds & (rounds - 1)) == 0) met = frame;
        // Some versions mark a borrowed reference in the lowest bits.
        const uint64_t code = word_in(bytes, layout.frame_code) & ~UINT64_C(7);
        python_frame *last = stack->count > 0 ? &stack->frames[stack->count - 1] : NULL;
        if (!layout.marks_entry && bytes[layout.frame_owner] >= OWNED_BY_NATIVE_STACK) {
            if (last) last->begins_evaluation = true;
        } else if (!is_shim(code)) {
            stack->frames[stack->count++] = frame_of(frame, code, bytes);
        }
        frame = word_in(bytes, layout.frame_previous);
    }
}

void stall_python_keep_lasting(python_stack *stack, const python_stack *earlier) {
    uint32_t lasting = 0;
    while (lasting < stack->count && lasting < earlier->count) {
        const python_frame *now = &stack->frames[stack->count - 1 - lasting];
        const python_frame *before = &earlier->frames[earlier->count - 1 - lasting];
        if (now->frame != before->frame || now->code != before->code) break;
        lasting++;
    }
    // Both are counted from the outermost frame. Without it, they must be the same.
    const bool is_same = lasting == stack->count && lasting == earlier->count;
    if (stack->is_broken || earlier->is_broken || (!is_same && (stack->lacks_outer || earlier->lacks_outer))) lasting = 0;
    const uint32_t gone = stack->count - lasting;
    stack->lacks_inner = gone > 0 || lasting < earlier->count;
    for (uint32_t i = 0; i < lasting && gone > 0; i++) stack->frames[i] = stack->frames[i + gone];
    stack->count = lasting;
}

static uint64_t place_of(const stall_frame *frame) {
    return frame->kind == STALL_FRAME_RETURN_ADDRESS ? frame->address - 1 : frame->address;
}

static bool evaluates(const stall_frame *frame, const python_other_part *part) {
    const uint64_t at = place_of(frame);
    if (frame->kind > STALL_FRAME_RETURN_ADDRESS) return false;
    return (at >= python.evaluate_low && at < python.evaluate_high) || (at >= part->low && at < part->high);
}

static uint32_t count_evaluations(const stall_frame *frames, uint32_t count, const python_other_part *part) {
    uint32_t evaluations = 0;
    for (uint32_t i = 0; i < count; i++) evaluations += evaluates(&frames[i], part);
    return evaluations;
}

static void find_other_part(
    stall_unwinder *unwinder, const stall_frame *frames, uint32_t count, python_other_part *part
) {
    for (uint32_t i = 0; i + 1 < count; i++) {
        const stall_frame *caller = &frames[i + 1];
        if (caller->kind != STALL_FRAME_RETURN_ADDRESS || evaluates(&frames[i], part)) continue;
        if (stall_unwinder_call_target(unwinder, caller->address) != python.evaluate_low) continue;
        if (stall_unwinder_find_part(unwinder, place_of(&frames[i]), &part->low, &part->high)) return;
    }
}

// The frames that are not inserted yet, from the outermost on, and where the next one goes.
typedef struct {
    const python_stack *stack;
    uint32_t left;
    stall_frame *frames;
    uint32_t to;
} insertion;

// The frames of one evaluation: up to the next that began one.
static void insert_evaluation(insertion *insertion, bool is_innermost) {
    for (bool is_first = true; insertion->left > 0; is_first = false) {
        const python_frame *frame = &insertion->stack->frames[insertion->left - 1];
        if (!is_first && frame->begins_evaluation && !is_innermost) break;
        insertion->left--;
        insertion->frames[--insertion->to] = (stall_frame){
            .address = frame->code,
            .kind = STALL_FRAME_PYTHON,
            // A function that returns and is called again between the two readings has the same frame.
            .is_guessed = insertion->stack->may_run && insertion->left == 0,
            .identity = stall_python_identity(&layout, frame->code),
            .position = frame->position,
        };
    }
}

uint32_t stall_python_insert(
    const python_stack *stack, stall_unwinder *unwinder, python_other_part *part, stall_frame *frames, uint32_t count,
    uint32_t capacity, bool is_truncated
) {
    if (stack->count == 0 || stack->count > capacity || count > capacity - stack->count) return count;
    // The outermost frame began one, whether it says so or is not the outermost that there is.
    uint32_t begun = 1, evaluations = count_evaluations(frames, count, part);
    for (uint32_t i = 0; i + 1 < stack->count; i++) begun += stack->frames[i].begins_evaluation;
    if (evaluations < begun && part->high == 0) {
        find_other_part(unwinder, frames, count, part);
        evaluations = count_evaluations(frames, count, part);
    }
    // The evaluations are matched from one end: the outermost, or the innermost if the other one is missing.
    const bool is_open = is_truncated || stack->lacks_outer;
    if ((is_open && stack->lacks_inner) || (!is_truncated && evaluations == 0)) return count;
    insertion insertion = {stack, stack->count, frames, count + stack->count};
    for (; is_truncated && begun > evaluations; begun--) insert_evaluation(&insertion, false);
    const uint32_t without = is_open && evaluations > begun ? evaluations - begun : 0;
    // From the outermost native frame on, each is moved to its new index, before the frames that it evaluates.
    for (uint32_t from = count, seen = 0; from-- > 0;) {
        const bool is_evaluation = evaluates(&frames[from], part);
        frames[--insertion.to] = frames[from];
        if (is_evaluation && ++seen > without) insert_evaluation(&insertion, seen == evaluations);
    }
    return count + stack->count;
}
